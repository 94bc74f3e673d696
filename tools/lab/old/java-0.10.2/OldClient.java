import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** What Java's client of 0.10.2 could: {@code OldClient SERVERS NAME SETTING=VALUE...}. Runs with newer releases too. */
public final class OldClient {
    private static final List<String> CODECS = Arrays.asList("none", "gzip", "snappy", "lz4");
    private static final int EACH = 10;
    private static final Map<String, Object> settings = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        settings.put("bootstrap.servers", arguments[0]);
        for (String pair : Arrays.asList(arguments).subList(2, arguments.length)) {
            String[] sides = pair.split("=", 2);
            settings.put(sides[0], sides[1]);
        }
        String topic = arguments[1];
        for (String codec : CODECS) produce(topic, codec, "all");
        produce(topic, "none", "0");
        consume(topic, EACH * (CODECS.size() + 1));
    }

    private static Map<String, Object> config(Object... pairs) {
        Map<String, Object> config = new HashMap<>(settings);
        for (int n = 0; n < pairs.length; n += 2) config.put((String) pairs[n], pairs[n + 1]);
        return config;
    }

    /** The topic comes into being by being asked for. */
    private static void produce(String topic, String codec, String acks) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(
                config("compression.type", codec, "linger.ms", 50, "acks", acks), new StringSerializer(), new StringSerializer())) {
            producer.partitionsFor(topic);
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int n = 0; n < EACH; n++)
                sent.add(producer.send(new ProducerRecord<>(topic, n % 3 == 0 ? null : "customer-" + n % 7,
                    "order " + n + " of " + codec + ": teapot teapot teapot teapot")));
            for (Future<RecordMetadata> one : sent) one.get();
        }
    }

    private static void consume(String topic, int count) {
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(
                config("group.id", topic + "-billing", "auto.offset.reset", "earliest", "enable.auto.commit", false,
                    "fetch.max.wait.ms", 100), new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(Collections.singletonList(topic));
            int seen = 0;
            long deadline = System.nanoTime() + 30_000_000_000L;
            while (seen < count && System.nanoTime() < deadline) seen += consumer.poll(200).count();
            if (seen < count) throw new IllegalStateException(seen + " of " + count + " records");
            consumer.commitSync();
            Map<TopicPartition, Long> times = new HashMap<>();
            for (TopicPartition partition : consumer.assignment()) {
                consumer.committed(partition);
                times.put(partition, 0L);
            }
            consumer.offsetsForTimes(times);
            consumer.endOffsets(consumer.assignment());
            consumer.listTopics();
        }
    }
}
