import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

/** What every client of the comparison does, with defaults: {@code LabCompare SERVERS TOPIC GROUP SECONDS}. */
public final class LabCompare {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[1];
        Map<String, Object> servers = Map.of("bootstrap.servers", arguments[0]);
        try (var producer = new KafkaProducer<>(servers, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < 100; n++)
                producer.send(new ProducerRecord<>(topic, "customer-" + n % 7, "order " + n + ": " + "teacup ".repeat(12)));
        }
        Map<String, Object> config = new HashMap<>(servers);
        config.putAll(Map.of("group.id", arguments[2], "auto.offset.reset", "earliest"));
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            int seen = 0;
            long deadline = System.nanoTime() + 30_000_000_000L;
            while (seen < 100 && System.nanoTime() < deadline) seen += consumer.poll(Duration.ofMillis(100)).count();
            if (seen < 100) throw new IllegalStateException(seen + " of 100 records");
            consumer.commitSync();
            deadline = System.nanoTime() + (long) (Double.parseDouble(arguments[3]) * 1e9);
            while (System.nanoTime() < deadline) consumer.poll(Duration.ofMillis(100));
        }
    }
}
