import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

/** Produces records one by one, and reads as many in a group: {@code JavaClient.java SERVERS TOPIC GROUP COUNT}. */
public final class JavaClient {
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> config = Map.of("bootstrap.servers", arguments[0], "group.id", arguments[2], "auto.offset.reset", "earliest");
        int count = Integer.parseInt(arguments[3]);
        try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < count; n++) producer.send(new ProducerRecord<>(arguments[1], "key " + n, "order " + n)).get();
        }
        List<String> seen = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(arguments[1]));
            long deadline = System.nanoTime() + 30_000_000_000L;
            while (seen.size() < count && System.nanoTime() < deadline)
                for (var record : consumer.poll(Duration.ofMillis(100))) seen.add(record.value());
            consumer.commitSync();
        }
        Collections.sort(seen);
        seen.forEach(System.out::println);
    }
}
