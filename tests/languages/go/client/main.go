// Uses the generated client: publishes an event that dies, finds it among the dead letters and replays it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"hookline.test/languages/hookline"
)

const account = "go"

func main() {
	configuration := hookline.NewConfiguration()
	configuration.Servers = hookline.ServerConfigurations{{URL: os.Getenv("HOOKLINE_URL")}}
	client := hookline.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), hookline.ContextAccessToken, os.Getenv("HOOKLINE_API_KEY"))

	input := hookline.NewEndpointInput(os.Getenv("RECEIVER_URL"), []string{"order.*"})
	input.SetAccount(account)
	endpoint := must(first(client.EndpointsAPI.CreateEndpoint(ctx).EndpointInput(*input).Execute()))

	publication := hookline.NewPublication("order.paid", map[string]any{"order": 42})
	publication.SetAccount(account)
	publish := client.EventsAPI.PublishEvent(ctx).Publication(*publication).IdempotencyKey("go-1")
	published := must(first(publish.Execute()))
	again := must(first(publish.Execute()))
	wait() // until it is dead

	listed := must(first(client.EventsAPI.ListEventDeliveries(ctx, published.Id).Execute()))
	dead := must(first(client.DeadLettersAPI.ListDeadLetters(ctx).Account(account).Execute()))
	letter := dead.Data[0]
	replayed := must(first(client.DeadLettersAPI.ReplayDeadLetter(ctx, letter.Id).Execute()))
	wait() // until it is delivered

	delivery := must(first(client.DeliveriesAPI.GetDelivery(ctx, letter.Id).Execute()))
	wrong := hookline.NewPublication("not a type", 1)
	_, _, err := client.EventsAPI.PublishEvent(ctx).Publication(*wrong).Execute()
	var refusal *hookline.GenericOpenAPIError
	if !errors.As(err, &refusal) {
		panic(err)
	}
	problem := refusal.Model().(hookline.Problem)

	report(map[string]any{
		"secret":      endpoint.GetSecret()[:6],
		"deliveries":  published.Deliveries,
		"duplicate":   []bool{published.Duplicate, again.Duplicate},
		"listed":      len(listed.Data),
		"died":        []any{letter.State, letter.Reason.Get(), letter.LastStatus.Get()},
		"replayed":    replayed.State,
		"in the end":  delivery.State,
		"at the last": delivery.DeliveredAt.Get() != nil,
		"refused":     []any{problem.Code, problem.Errors[0].Pointer},
	})
}

func first[T any](value T, _ any, err error) (T, error) { return value, err }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var input = bufio.NewReader(os.Stdin)

func wait() {
	fmt.Println("waiting")
	must(input.ReadString('\n'))
}

func report(seen map[string]any) {
	fmt.Println(string(must(json.Marshal(seen))))
}
