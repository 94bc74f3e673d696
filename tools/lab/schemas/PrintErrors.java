import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints every error of kafka-clients as JSON, one a line, by code: code, name, whether a client may try again. */
public class PrintErrors {
    public static void main(String[] arguments) {
        List<Errors> errors = new ArrayList<>(List.of(Errors.values()));
        errors.sort(Comparator.comparingInt(Errors::code));
        List<String> rows = new ArrayList<>();
        for (Errors each : errors) {
            // NONE has no exception; what has one says by its class whether it passes by itself.
            boolean retriable = each.exception() instanceof RetriableException;
            rows.add("  {\"code\": " + each.code() + ", \"name\": \"" + each.name() + "\", \"retriable\": " + retriable + "}");
        }
        System.out.print("[\n" + String.join(",\n", rows) + "\n]\n");
    }
}
