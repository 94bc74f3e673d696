import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.serialization.*;

/** Logins with Java's own clients: {@code LabLogin SERVERS MECHANISM}, or {@code refused} for those that fail. */
public final class LabLogin {
    private static final String MODULES = "org.apache.kafka.common.security.";
    private static String servers;

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        switch (arguments[1]) {
            case "refused" -> refused();
            default -> work(arguments[1]);
        }
    }

    private static Map<String, Object> login(String mechanism, String password, Object... pairs) {
        String named = " required username=\"alice\" password=\"" + password + "\";";
        String module = switch (mechanism) {
            case "OAUTHBEARER" -> MODULES + "oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"alice\";";
            case "PLAIN" -> MODULES + "plain.PlainLoginModule" + named;
            default -> MODULES + "scram.ScramLoginModule" + named;
        };
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", servers, "enable.metrics.push", false,
            "security.protocol", "SASL_PLAINTEXT", "sasl.mechanism", mechanism, "sasl.jaas.config", module));
        for (int n = 0; n < pairs.length; n += 2) config.put((String) pairs[n], pairs[n + 1]);
        return config;
    }

    private static Map<String, Object> login(String mechanism) {
        return login(mechanism, "alice-secret");
    }

    private static void work(String mechanism) throws Exception {
        String topic = "java-behind-" + mechanism.toLowerCase();
        try (Admin admin = Admin.create(login(mechanism))) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            produce(topic, mechanism);
            consume(topic, mechanism);
            if (mechanism.equals("PLAIN")) token(admin);
        }
    }

    /** With a session that ends while the producer still has something to say. */
    private static void produce(String topic, String mechanism) throws Exception {
        try (var producer = new KafkaProducer<>(login(mechanism), new StringSerializer(), new StringSerializer())) {
            int rounds = mechanism.equals("SCRAM-SHA-512") ? 10 : 2;
            for (int n = 0; n < rounds; n++) {
                producer.send(new ProducerRecord<>(topic, "customer-" + n, "order " + n)).get();
                Thread.sleep(500);
            }
        }
    }

    private static void consume(String topic, String mechanism) {
        Map<String, Object> config = login(mechanism, "alice-secret", "group.id", topic + "-readers", "group.protocol", "classic",
            "auto.offset.reset", "earliest", "enable.auto.commit", false, "fetch.max.wait.ms", 100);
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long deadline = System.nanoTime() + 20_000_000_000L;
            for (int seen = 0; seen < 2 && System.nanoTime() < deadline; ) seen += consumer.poll(Duration.ofMillis(200)).count();
            consumer.commitSync();
        }
    }

    private static void token(Admin admin) throws Exception {
        var token = admin.createDelegationToken().delegationToken().get();
        Thread.sleep(500); // a broker knows of a token when its copy of the metadata has come so far
        admin.renewDelegationToken(token.hmac()).expiryTimestamp().get();
        admin.describeDelegationToken().delegationTokens().get();
        admin.expireDelegationToken(token.hmac()).expiryTimestamp().get();
    }

    /** Each login must fail, and say so. */
    private static void refused() throws Exception {
        for (String mechanism : List.of("PLAIN", "SCRAM-SHA-256")) {
            try (Admin admin = Admin.create(login(mechanism, "not-her-secret"))) {
                admin.describeCluster().nodes().get();
                throw new IllegalStateException("a wrong login was taken");
            } catch (ExecutionException failed) {
                if (!(failed.getCause() instanceof AuthenticationException)) throw failed;
            }
        }
    }
}
