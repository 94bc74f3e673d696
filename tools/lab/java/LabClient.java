import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.*;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

/** Java's own clients, as the lab records them: {@code LabClient SERVERS SCENARIO}. */
public final class LabClient {
    private static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    private static String servers;

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        switch (arguments[1]) {
            case "everyday" -> everyday();
            case "admin" -> admin();
            case "transactions" -> transactions();
            case "share" -> share();
            case "kip848" -> group("java-next-gen", "consumer");
            case "classic" -> group("java-classic", "classic");
            default -> throw new IllegalArgumentException(arguments[1]);
        }
    }

    private static Map<String, Object> config(Object... pairs) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", servers, "enable.metrics.push", false));
        for (int n = 0; n < pairs.length; n += 2) config.put((String) pairs[n], pairs[n + 1]);
        return config;
    }

    private static KafkaProducer<String, String> producer(Object... pairs) {
        return new KafkaProducer<>(config(pairs), new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(String group, Object... pairs) {
        Map<String, Object> config = config(pairs);
        config.putIfAbsent("group.id", group);
        config.put("auto.offset.reset", "earliest");
        config.put("enable.auto.commit", false);
        config.put("fetch.max.wait.ms", 100);
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private static void create(Admin admin, String topic, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
    }

    private static void produce(String topic, String codec, int count, Object... more) {
        try (var producer = producer("compression.type", codec, "linger.ms", 20)) {
            for (int n = 0; n < count; n++) {
                var record = new ProducerRecord<>(topic, "customer-" + n % 7, "order " + n + ": " + "teapot ".repeat(12));
                record.headers().add("codec", codec.getBytes()).add("empty", null);
                producer.send(record);
            }
        }
    }

    private static int drain(KafkaConsumer<String, String> consumer, int count) {
        int seen = 0;
        long deadline = System.nanoTime() + 30_000_000_000L;
        while (seen < count && System.nanoTime() < deadline) seen += consumer.poll(Duration.ofMillis(200)).count();
        if (seen < count) throw new IllegalStateException(seen + " of " + count + " records");
        return seen;
    }

    private static void everyday() throws Exception {
        String topic = "java-orders";
        try (Admin admin = Admin.create(config())) {
            create(admin, topic, 2);
            for (String codec : CODECS) produce(topic, codec, 20);
            try (var consumer = consumer("java-billing", "group.protocol", "classic")) {
                consumer.subscribe(List.of(topic));
                drain(consumer, 20 * CODECS.size());
                consumer.commitSync();
                consumer.committed(consumer.assignment());
                consumer.endOffsets(consumer.assignment());
            }
            admin.listTopics().names().get();
            admin.describeTopics(List.of(topic)).allTopicNames().get();
            admin.listGroups().all().get();
            admin.describeConsumerGroups(List.of("java-billing")).all().get();
            admin.listConsumerGroupOffsets("java-billing").all().get();
            admin.describeCluster().nodes().get();
            admin.deleteConsumerGroups(List.of("java-billing")).all().get();
            admin.deleteTopics(List.of(topic)).all().get();
        }
    }

    private interface Call {
        KafkaFuture<?> call();
    }

    /** What one broker refuses is traffic too: the answer is on the wire all the same. */
    private static void attempt(Call call) {
        try {
            call.call().get(15, TimeUnit.SECONDS);
        } catch (Exception refused) {
            System.err.println(refused.getMessage());
        }
    }

    private static void admin() throws Exception {
        String topic = "java-admin";
        try (Admin admin = Admin.create(config("client.id", "java-admin-client"))) {
            create(admin, topic, 2);
            produce(topic, "none", 10);
            var partition = new TopicPartition(topic, 0);
            var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
            var acl = new AclBinding(
                new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
                new AccessControlEntry("User:ANONYMOUS", "*", AclOperation.ALL, AclPermissionType.ALLOW));
            var quota = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, "greedy"));
            List<Call> calls = List.of(
                () -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all(),
                () -> admin.describeConfigs(List.of(resource)).all(),
                () -> admin.describeConfigs(List.of(new ConfigResource(ConfigResource.Type.BROKER, "1")),
                    new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(false)).all(),
                () -> admin.incrementalAlterConfigs(Map.of(resource, List.of(
                    new AlterConfigOp(new ConfigEntry("retention.ms", "86400000"), AlterConfigOp.OpType.SET)))).all(),
                () -> admin.createAcls(List.of(acl)).all(),
                () -> admin.describeAcls(AclBindingFilter.ANY).values(),
                () -> admin.deleteAcls(List.of(acl.toFilter())).all(),
                () -> admin.alterClientQuotas(List.of(new ClientQuotaAlteration(quota,
                    List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1048576.5))))).all(),
                () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities(),
                () -> admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("carol",
                    new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "not-a-secret"))).all(),
                () -> admin.describeUserScramCredentials().all(),
                () -> admin.describeProducers(List.of(partition)).all(),
                () -> admin.listTransactions().all(),
                () -> admin.describeTransactions(List.of("nobody")).all(),
                () -> admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).all(),
                () -> admin.alterPartitionReassignments(Map.of(partition,
                    Optional.of(new NewPartitionReassignment(List.of(1))))).all(),
                () -> admin.listPartitionReassignments().reassignments(),
                () -> admin.describeLogDirs(List.of(1)).allDescriptions(),
                () -> admin.describeReplicaLogDirs(List.of(new TopicPartitionReplica(topic, 0, 1))).all(),
                () -> admin.alterReplicaLogDirs(Map.of(new TopicPartitionReplica(topic, 0, 1), "/tmp/kafka-logs/lab")).all(),
                () -> admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(1))).all(),
                () -> admin.listOffsets(Map.of(partition, OffsetSpec.maxTimestamp())).all(),
                () -> admin.describeFeatures().featureMetadata(),
                () -> admin.updateFeatures(Map.of("transaction.version",
                    new FeatureUpdate((short) 2, FeatureUpdate.UpgradeType.UPGRADE)),
                    new UpdateFeaturesOptions().validateOnly(true)).all(),
                () -> admin.describeMetadataQuorum().quorumInfo(),
                () -> admin.listConfigResources().all(),
                () -> admin.createDelegationToken().delegationToken(),
                () -> admin.describeDelegationToken().delegationTokens(),
                () -> admin.renewDelegationToken(new byte[] {1, 2, 3}).expiryTimestamp(),
                () -> admin.expireDelegationToken(new byte[] {1, 2, 3}).expiryTimestamp(),
                () -> admin.alterConsumerGroupOffsets("java-admin-group",
                    Map.of(partition, new OffsetAndMetadata(3))).all(),
                () -> admin.deleteConsumerGroupOffsets("java-admin-group", Set.of(partition)).all(),
                () -> admin.describeConsumerGroups(List.of("java-admin-group")).all(),
                () -> admin.describeShareGroups(List.of("java-no-share")).all(),
                () -> admin.describeStreamsGroups(List.of("java-no-streams")).all(),
                () -> admin.describeClassicGroups(List.of("java-admin-group")).all(),
                () -> admin.abortTransaction(new AbortTransactionSpec(partition, 1, (short) 0, 0)).all(),
                () -> admin.fenceProducers(List.of("java-fenced")).all(),
                () -> admin.removeMembersFromConsumerGroup("java-admin-group",
                    new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("someone")))).all(),
                () -> admin.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true)).nodes(),
                () -> admin.addRaftVoter(2, Uuid.randomUuid(), Set.of(new RaftVoterEndpoint("X", "localhost", 1))).all(),
                () -> admin.removeRaftVoter(2, Uuid.randomUuid()).all(),
                () -> admin.unregisterBroker(7).all(),
                () -> admin.clientInstanceId(Duration.ofSeconds(2)) == null ? null : KafkaFuture.completedFuture(null),
                () -> admin.deleteConsumerGroups(List.of("java-admin-group")).all(),
                () -> admin.deleteTopics(List.of(topic)).all());
            for (Call call : calls) {
                try {
                    attempt(call);
                } catch (RuntimeException refused) {
                    System.err.println(refused.getMessage());
                }
            }
        }
    }

    private static void transactions() throws Exception {
        String from = "java-inbox", to = "java-outbox", group = "java-mill";
        try (Admin admin = Admin.create(config())) {
            create(admin, from, 1);
            create(admin, to, 1);
        }
        produce(from, "none", 9);
        try (var consumer = consumer(group, "isolation.level", "read_committed", "group.protocol", "classic", "max.poll.records", 3);
             var producer = producer("transactional.id", "java-mill-1")) {
            producer.initTransactions();
            consumer.subscribe(List.of(from));
            for (int round = 0, seen = 0; seen < 9; ) {
                var records = consumer.poll(Duration.ofMillis(300));
                if (records.isEmpty()) continue;
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (var record : records) {
                    producer.send(new ProducerRecord<>(to, record.key(), record.value()));
                    offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
                    seen++;
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.flush(); // what was not sent yet, an abort would not send
                if (round++ == 1) producer.abortTransaction();
                else producer.commitTransaction();
            }
        }
        try (var consumer = consumer("java-reader", "isolation.level", "read_committed", "group.protocol", "classic")) {
            consumer.subscribe(List.of(to));
            drain(consumer, 3);
        }
    }

    private static void group(String topic, String protocol) throws Exception {
        try (Admin admin = Admin.create(config())) {
            create(admin, topic, 4);
        }
        produce(topic, "lz4", 20);
        try (var first = consumer(topic + "-group", "group.protocol", protocol)) {
            first.subscribe(List.of(topic));
            drain(first, 20);
            first.commitSync();
            Thread second = new Thread(() -> {
                try (var other = consumer(topic + "-group", "group.protocol", protocol)) {
                    other.subscribe(List.of(topic));
                    for (int n = 0; n < 20 && other.assignment().isEmpty(); n++) other.poll(Duration.ofMillis(200));
                    other.commitSync();
                }
            });
            second.start();
            while (second.isAlive()) first.poll(Duration.ofMillis(200));
            first.commitSync();
        }
    }

    private static void share() throws Exception {
        String topic = "java-shared", group = "java-pool";
        try (Admin admin = Admin.create(config())) {
            create(admin, topic, 1);
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, group), List.of(
                new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET)))).all().get();
            produce(topic, "none", 12);
            try (var consumer = new KafkaShareConsumer<>(config("group.id", group, "share.acknowledgement.mode", "explicit"),
                    new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of(topic));
                int seen = 0;
                long deadline = System.nanoTime() + 20_000_000_000L;
                while (seen < 12 && System.nanoTime() < deadline) {
                    for (var record : consumer.poll(Duration.ofMillis(300))) {
                        consumer.acknowledge(record, seen % 5 == 4 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
                        seen++;
                    }
                    consumer.commitSync();
                }
            }
            attempt(() -> admin.describeShareGroups(List.of(group)).all());
            attempt(() -> admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).all());
        }
    }
}
