import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Scanner;

/** Reads cases from standard input, a line each, and says of each whether the guide's code believes it. */
public class Verifier {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            String[] fields = lines.nextLine().split("\t");
            Map<String, List<String>> headers = Map.of(
                "webhook-id", List.of(fields[1]),
                "webhook-timestamp", List.of(fields[2]),
                "webhook-signature", List.of(fields[3]));
            System.out.println(Genuine.isGenuine(fields[0], headers, HexFormat.of().parseHex(fields[4])));
        }
    }
}
