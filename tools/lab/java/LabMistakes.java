import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.KafkaException;

/** An admin client with wrong settings: {@code LabMistakes SERVERS [NAME=VALUE...]}. It must fail. */
public final class LabMistakes {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", arguments[0], "enable.metrics.push", false,
            "client.id", "orders", "request.timeout.ms", 2000, "default.api.timeout.ms", 3000,
            "reconnect.backoff.ms", 500, "reconnect.backoff.max.ms", 1000));
        for (String pair : List.of(arguments).subList(1, arguments.length)) {
            String[] sides = pair.split("=", 2);
            config.put(sides[0], sides[1]);
        }
        try (Admin admin = Admin.create(config)) {
            admin.listTopics().names().get();
        } catch (ExecutionException | KafkaException failed) {
            return;
        }
        throw new IllegalStateException("nothing went wrong");
    }
}
