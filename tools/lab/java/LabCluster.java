import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/** What makes nodes of a cluster talk to each other: {@code LabCluster SERVERS SCENARIO}. */
public final class LabCluster {
    private static String servers;

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        switch (arguments[1]) {
            case "quorum" -> quorum();
            case "brokers" -> brokers();
            default -> throw new IllegalArgumentException(arguments[1]);
        }
    }

    private static Map<String, Object> config(Object... pairs) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", servers, "enable.metrics.push", false));
        for (int n = 0; n < pairs.length; n += 2) config.put((String) pairs[n], pairs[n + 1]);
        return config;
    }

    /** What the cluster refuses is traffic too. */
    private static void attempt(KafkaFuture<?> call) throws Exception {
        try {
            call.get(15, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException refused) {
            System.err.println(refused.getMessage());
        }
    }

    /** The third controller is made a voter by a name that is not its own, which it mends; the second goes and comes back. */
    private static void voters(Admin admin) throws Exception {
        var quorum = admin.describeMetadataQuorum().quorumInfo().get();
        for (var replica : quorum.observers())
            if (replica.replicaId() == 3)
                attempt(admin.addRaftVoter(3, replica.replicaDirectoryId(),
                    Set.of(new RaftVoterEndpoint("CONTROLLER", "localhost", 19095))).all());
        Thread.sleep(1500);
        for (var replica : quorum.voters())
            if (replica.replicaId() == 2) attempt(admin.removeRaftVoter(2, replica.replicaDirectoryId()).all());
        Thread.sleep(500);
    }

    /** A transaction whose partitions are on both brokers; a replica is added; the leader moves under a consumer's feet. */
    private static void brokers() throws Exception {
        String topic = "java-replicated", single = "java-single";
        var moved = new TopicPartition(topic, 0);
        try (Admin admin = Admin.create(config())) {
            admin.createTopics(List.of(new NewTopic(topic, Map.of(0, List.of(1, 2), 1, List.of(2, 1))),
                new NewTopic(single, Map.of(0, List.of(1))))).all().get();
            try (var producer = new KafkaProducer<>(config("transactional.id", "java-teller", "acks", "all"), new StringSerializer(), new StringSerializer());
                 var consumer = new KafkaConsumer<>(config("isolation.level", "read_committed", "fetch.max.wait.ms", 100, "metadata.max.age.ms", 500),
                     new StringDeserializer(), new StringDeserializer())) {
                producer.initTransactions();
                for (boolean commit : List.of(true, false)) {
                    producer.beginTransaction();
                    for (int n = 0; n < 4; n++) producer.send(new ProducerRecord<>(topic, n % 2, "customer-" + n, "order " + n));
                    if (commit) producer.commitTransaction();
                    else producer.abortTransaction();
                }
                consumer.assign(List.of(moved));
                consumer.seekToBeginning(List.of(moved));
                consumer.poll(Duration.ofMillis(500));
                attempt(admin.alterPartitionReassignments(Map.of(
                    new TopicPartition(single, 0), Optional.of(new NewPartitionReassignment(List.of(1, 2))),
                    moved, Optional.of(new NewPartitionReassignment(List.of(2, 1))))).all());
                attempt(admin.electLeaders(ElectionType.PREFERRED, Set.of(moved)).all());
                for (int n = 0; n < 8; n++) consumer.poll(Duration.ofMillis(200));
                attempt(admin.listPartitionReassignments().reassignments());
            }
        }
    }

    /** A broker forwards what only the leader of the quorum can do. */
    private static void quorum() throws Exception {
        String topic = "java-quorum";
        try (Admin admin = Admin.create(config())) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            try (var producer = new KafkaProducer<>(config(), new StringSerializer(), new StringSerializer())) {
                producer.send(new ProducerRecord<>(topic, "customer", "order")).get();
            }
            attempt(admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, topic), List.of(
                new AlterConfigOp(new ConfigEntry("retention.ms", "86400000"), AlterConfigOp.OpType.SET)))).all());
            attempt(admin.describeFeatures().featureMetadata());
            voters(admin);
            attempt(admin.deleteTopics(List.of(topic)).all());
        }
    }
}
