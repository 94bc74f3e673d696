import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;

/** What Java's client of 0.11 brought: an admin, headers, transactions: {@code OldAdmin SERVERS NAME}. */
public final class OldAdmin {
    public static void main(String[] arguments) throws Exception {
        String servers = arguments[0], topic = arguments[1];
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", servers);
        try (AdminClient admin = AdminClient.create(config)) {
            admin.createTopics(Collections.singletonList(new NewTopic(topic, 2, (short) 1))).all().get();
            transactions(config, topic);
            administer(admin, topic);
            admin.deleteTopics(Collections.singletonList(topic)).all().get();
        }
    }

    private static void transactions(Map<String, Object> servers, String topic) {
        Map<String, Object> config = new HashMap<>(servers);
        config.put("transactional.id", topic + "-teller");
        config.put("compression.type", "lz4");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            for (int round = 0; round < 2; round++) {
                producer.beginTransaction();
                for (int n = 0; n < 4; n++) {
                    ProducerRecord<String, String> record = new ProducerRecord<>(topic, "customer-" + n, "entry " + n);
                    record.headers().add("round", new byte[] {(byte) round});
                    producer.send(record);
                }
                producer.sendOffsetsToTransaction(
                    Collections.singletonMap(new TopicPartition(topic, 0), new OffsetAndMetadata(round)), topic + "-mill");
                if (round == 0) producer.commitTransaction();
                else producer.abortTransaction();
            }
        }
    }

    private static void administer(AdminClient admin, String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        AclBinding acl = new AclBinding(new Resource(ResourceType.TOPIC, topic),
            new AccessControlEntry("User:ANONYMOUS", "*", AclOperation.ALL, AclPermissionType.ALLOW));
        attempt(admin.listTopics().names());
        attempt(admin.describeTopics(Collections.singletonList(topic)).all());
        attempt(admin.describeCluster().nodes());
        attempt(admin.describeConfigs(Collections.singletonList(resource)).all());
        attempt(admin.alterConfigs(Collections.singletonMap(resource,
            new Config(Collections.singletonList(new ConfigEntry("retention.ms", "86400000"))))).all());
        attempt(admin.createAcls(Collections.singletonList(acl)).all());
        attempt(admin.describeAcls(AclBindingFilter.ANY).values());
        attempt(admin.deleteAcls(Collections.singletonList(acl.toFilter())).all());
    }

    /** What the broker refuses is traffic too. */
    private static void attempt(KafkaFuture<?> call) throws Exception {
        try {
            call.get(15, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException refused) {
            System.err.println(refused.getMessage());
        }
    }
}
