import com.fasterxml.jackson.databind.ObjectMapper;
import hookline.ApiClient;
import hookline.ApiException;
import hookline.api.DeadLettersApi;
import hookline.api.DeliveriesApi;
import hookline.api.EndpointsApi;
import hookline.api.EventsApi;
import hookline.model.Delivery;
import hookline.model.DeliveryPage;
import hookline.model.Endpoint;
import hookline.model.EndpointInput;
import hookline.model.Problem;
import hookline.model.Publication;
import hookline.model.Published;
import java.util.List;
import java.util.Map;
import java.util.Scanner;

/** Uses the generated client: publishes an event that dies, finds it among the dead letters and replays it. */
public class Client {
    private static final String ACCOUNT = "java";
    private static final Scanner LINES = new Scanner(System.in);

    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("HOOKLINE_URL"));
        client.setRequestInterceptor(
            request -> request.header("Authorization", "Bearer " + System.getenv("HOOKLINE_API_KEY")));
        EventsApi events = new EventsApi(client);
        DeadLettersApi deadLetters = new DeadLettersApi(client);

        Endpoint endpoint = new EndpointsApi(client).createEndpoint(
            new EndpointInput().url(java.net.URI.create(System.getenv("RECEIVER_URL"))).addEventsItem("order.*").account(ACCOUNT));
        Publication publication = new Publication().type("order.paid").payload(Map.of("order", 42)).account(ACCOUNT);
        Published published = events.publishEvent(publication, "java-1");
        Published again = events.publishEvent(publication, "java-1");
        await(); // until it is dead

        DeliveryPage listed = events.listEventDeliveries(published.getId(), null, null, null);
        DeliveryPage dead = deadLetters.listDeadLetters(null, null, ACCOUNT, null, null, null, null, null, null);
        Delivery letter = dead.getData().get(0);
        Delivery replayed = deadLetters.replayDeadLetter(letter.getId());
        await(); // until it is delivered

        Delivery delivery = new DeliveriesApi(client).getDelivery(letter.getId());
        Problem problem;
        try {
            events.publishEvent(new Publication().type("not a type").payload(1), null);
            throw new IllegalStateException("nothing was refused");
        } catch (ApiException refusal) {
            problem = ApiClient.createDefaultObjectMapper().readValue(refusal.getResponseBody(), Problem.class);
        }

        System.out.println(new ObjectMapper().writeValueAsString(Map.of(
            "secret", endpoint.getSecret().substring(0, 6),
            "deliveries", published.getDeliveries(),
            "duplicate", List.of(published.getDuplicate(), again.getDuplicate()),
            "listed", listed.getData().size(),
            "died", List.of(letter.getState().getValue(), letter.getReason().getValue(), letter.getLastStatus()),
            "replayed", replayed.getState().getValue(),
            "in the end", delivery.getState().getValue(),
            "at the last", delivery.getDeliveredAt() != null,
            "refused", List.of(problem.getCode(), problem.getErrors().get(0).getPointer()))));
    }

    private static void await() {
        System.out.println("waiting");
        LINES.nextLine();
    }
}
