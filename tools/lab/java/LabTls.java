import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

/** A day behind TLS, with Java's own clients: {@code LabTls SERVERS NAME=VALUE...}. */
public final class LabTls {
    private static final int COUNT = 20;
    private static Map<String, Object> settings;

    public static void main(String[] arguments) throws Exception {
        settings = new HashMap<>(Map.of("bootstrap.servers", arguments[0], "enable.metrics.push", false));
        for (String pair : List.of(arguments).subList(1, arguments.length)) {
            String[] sides = pair.split("=", 2);
            settings.put(sides[0], sides[1]);
        }
        String topic = "java-behind-tls";
        try (Admin admin = Admin.create(settings)) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            for (String codec : List.of("none", "zstd")) produce(topic, codec);
            consume(topic);
            admin.deleteTopics(List.of(topic)).all().get();
        }
    }

    private static Map<String, Object> with(Object... pairs) {
        Map<String, Object> config = new HashMap<>(settings);
        for (int n = 0; n < pairs.length; n += 2) config.put((String) pairs[n], pairs[n + 1]);
        return config;
    }

    private static void produce(String topic, String codec) throws Exception {
        var config = with("compression.type", codec, "linger.ms", 20);
        try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < COUNT; n++) producer.send(new ProducerRecord<>(topic, "customer-" + n % 7, "order " + n));
            producer.send(new ProducerRecord<>(topic, "large", "whisk ".repeat(8_000))).get();
        }
    }

    private static void consume(String topic) {
        var config = with("group.id", "java-behind-tls", "auto.offset.reset", "earliest", "fetch.max.wait.ms", 100);
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            int seen = 0;
            for (int n = 0; n < 100 && seen < 2 * (COUNT + 1); n++) seen += consumer.poll(Duration.ofMillis(200)).count();
            consumer.commitSync();
            if (seen != 2 * (COUNT + 1)) throw new IllegalStateException(seen + " records");
        }
    }
}
