import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;

/** Java's client in the scenarios of the survey: {@code Survey SERVERS SCENARIO TOPIC GROUP}. */
public final class Survey {
    private static String servers, topic, group;

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        topic = arguments[2];
        group = arguments[3];
        switch (arguments[1]) {
            case "plain" -> { produce(100, 12); consume(100, 7); }
            case "changed" -> { produce(100, 12, "acks", "1", "compression.type", "gzip"); consume(100, 7, "fetch.max.wait.ms", 250); }
            case "idempotent" -> produce(100, 12, "enable.idempotence", true);
            case "transactional" -> transactions();
            case "group-classic" -> members();
            case "group-kip848" -> members("group.protocol", "consumer");
            case "compression" -> {
                List<String> codecs = List.of("none", "gzip", "snappy", "lz4", "zstd");
                for (String codec : codecs) produce(20, 12, "compression.type", codec);
                consume(20 * codecs.size(), 0);
            }
            case "large-batches" -> { produce(100, 700); consume(100, 0); }
            case "slow-broker" -> { produceSlowly(); consume(40, 0); }
            case "broker-restarted", "leader-moved" -> steadily();
            case "faulted" -> faulted();
            case "auth-refused" -> refused();
            default -> throw new IllegalArgumentException(arguments[1]);
        }
    }

    private static Map<String, Object> config(Object... pairs) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", servers));
        config.putAll(login());
        for (int n = 0; n < pairs.length; n += 2) config.put((String) pairs[n], pairs[n + 1]);
        return config;
    }

    /** How to log in, and the certificate to trust, if the environment says so. */
    private static Map<String, Object> login() {
        String mechanism = System.getenv().getOrDefault("LAB_MECHANISM", ""), trust = System.getenv().getOrDefault("LAB_TRUST", "");
        Map<String, Object> login = new HashMap<>();
        if (!trust.isEmpty()) login.putAll(Map.of("ssl.truststore.type", "PEM", "ssl.truststore.location", trust));
        if (!mechanism.isEmpty()) {
            String modules = "org.apache.kafka.common.security.", named = " required username=alice password=\"alice-secret\";";
            login.putAll(Map.of("sasl.mechanism", mechanism, "sasl.jaas.config", switch (mechanism) {
                case "OAUTHBEARER" -> modules + "oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=alice;";
                case "PLAIN" -> modules + "plain.PlainLoginModule" + named;
                default -> modules + "scram.ScramLoginModule" + named;
            }));
        }
        String protocol = (mechanism.isEmpty() ? "" : "SASL_") + (trust.isEmpty() ? "PLAINTEXT" : "SSL");
        if (!protocol.equals("PLAINTEXT")) login.put("security.protocol", protocol);
        return login;
    }

    private static KafkaProducer<String, String> producer(Object... pairs) {
        return new KafkaProducer<>(config(pairs), new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(Object... pairs) {
        Map<String, Object> config = config(pairs);
        config.putAll(Map.of("group.id", group, "auto.offset.reset", "earliest"));
        var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private static ProducerRecord<String, String> order(int n, int words) {
        return new ProducerRecord<>(topic, "customer-" + n % 7, "order " + n + ": " + "teacup ".repeat(words));
    }

    private static void produce(int count, int words, Object... settings) {
        try (var producer = producer(settings)) {
            for (int n = 0; n < count; n++) producer.send(order(n, words));
        }
    }

    private static void produceSlowly() throws Exception {
        try (var producer = producer()) {
            for (int n = 0; n < 40; n++) {
                producer.send(order(n, 12));
                Thread.sleep(20);
            }
        }
    }

    private static void drain(KafkaConsumer<String, String> consumer, int count) {
        long deadline = System.nanoTime() + 60_000_000_000L;
        for (int seen = 0; seen < count; seen += consumer.poll(Duration.ofMillis(100)).count())
            if (System.nanoTime() > deadline) throw new IllegalStateException(seen + " of " + count + " records");
        consumer.commitSync();
    }

    private static void stay(KafkaConsumer<String, String> consumer, double seconds) {
        long deadline = System.nanoTime() + (long) (seconds * 1e9);
        while (System.nanoTime() < deadline) consumer.poll(Duration.ofMillis(100));
    }

    private static void consume(int count, double seconds, Object... settings) {
        try (var consumer = consumer(settings)) {
            drain(consumer, count);
            stay(consumer, seconds);
        }
    }

    private static void transactions() {
        try (var producer = producer("transactional.id", group + "-teller")) {
            producer.initTransactions();
            for (boolean commit : new boolean[] {true, false, true}) {
                producer.beginTransaction();
                for (int n = 0; n < 10; n++) producer.send(order(n, 12));
                producer.flush(); // what was not sent yet, an abort would not send
                if (commit) producer.commitTransaction();
                else producer.abortTransaction();
            }
        }
        consume(20, 0, "isolation.level", "read_committed");
    }

    /** A second member comes and goes. */
    private static void members(Object... settings) throws Exception {
        produce(20, 12);
        try (var first = consumer(settings)) {
            drain(first, 20);
            Thread second = new Thread(() -> {
                try (var other = consumer(settings)) {
                    for (int n = 0; n < 200 && other.assignment().isEmpty(); n++) other.poll(Duration.ofMillis(100));
                    stay(other, 4);
                }
            });
            second.start();
            while (second.isAlive()) first.poll(Duration.ofMillis(100));
            stay(first, 4);
        }
    }

    /** Produces and consumes until standard input ends. */
    private static void steadily() throws Exception {
        var ended = new AtomicBoolean();
        var input = new Thread(() -> {
            try { System.in.readAllBytes(); } catch (java.io.IOException gone) { }
            ended.set(true);
        });
        input.setDaemon(true);
        input.start();
        try (var producer = producer(); var consumer = consumer()) {
            for (int n = 0; !ended.get(); n++) {
                producer.send(order(n, 3));
                consumer.poll(Duration.ofMillis(250));
                Thread.sleep(100);
            }
            producer.flush();
            consumer.commitSync();
        }
    }

    /** Goes on after errors, and tells of each. */
    private static void faulted() throws Exception {
        List<Exception> failed = Collections.synchronizedList(new ArrayList<>());
        try (var producer = producer()) {
            for (int n = 0; n < 40; n++) {
                producer.send(order(n, 12), (place, error) -> { if (error != null) failed.add(error); });
                Thread.sleep(20);
            }
        }
        for (Exception error : failed) System.err.println("not delivered: " + error);
        int seen = 0;
        try (var consumer = consumer()) {
            long deadline = System.nanoTime() + 90_000_000_000L;
            while (seen < 40 - failed.size() && System.nanoTime() < deadline) {
                try {
                    seen += consumer.poll(Duration.ofMillis(100)).count();
                } catch (org.apache.kafka.common.KafkaException error) {
                    System.err.println("thrown: " + error);
                    Thread.sleep(1000);
                }
            }
            try {
                consumer.commitSync();
            } catch (org.apache.kafka.common.KafkaException error) {
                System.err.println("thrown: " + error);
            }
        }
        System.err.println("seen: " + seen);
    }

    private static void refused() throws Exception {
        String login = "org.apache.kafka.common.security.plain.PlainLoginModule required username=alice password=not-her-secret;";
        try (var producer = producer("security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", "PLAIN", "sasl.jaas.config", login,
                                     "max.block.ms", 8000)) {
            producer.send(order(0, 3)).get(8, TimeUnit.SECONDS);
            throw new IllegalStateException("not refused");
        } catch (ExecutionException | TimeoutException | org.apache.kafka.common.KafkaException expected) {
            System.err.println(expected.getMessage());
        }
    }
}
