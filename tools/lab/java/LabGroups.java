import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;

/** Rarer lives of groups, with Java's own clients: {@code LabGroups SERVERS SCENARIO}. */
public final class LabGroups {
    private static String servers;

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        switch (arguments[1]) {
            case "cooperative" -> cooperative();
            case "regex" -> regex();
            case "shareAdmin" -> shareAdmin();
            case "streams" -> streams();
            default -> throw new IllegalArgumentException(arguments[1]);
        }
    }

    private static Map<String, Object> config(Object... pairs) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", servers, "enable.metrics.push", false));
        for (int n = 0; n < pairs.length; n += 2) config.put((String) pairs[n], pairs[n + 1]);
        return config;
    }

    private static void create(Admin admin, String topic, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
    }

    private static void produce(String topic, int count) {
        try (var producer = new KafkaProducer<>(config("linger.ms", 20), new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < count; n++)
                producer.send(new ProducerRecord<>(topic, "customer-" + n % 7, "order " + n + " " + "spoon ".repeat(n % 5)));
        }
    }

    private static KafkaConsumer<String, String> consumer(String group, Object... pairs) {
        Map<String, Object> config = config(pairs);
        config.putAll(Map.of("group.id", group, "auto.offset.reset", "earliest", "enable.auto.commit", false,
            "fetch.max.wait.ms", 100));
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    private static void drain(KafkaConsumer<String, String> consumer, int count) {
        int seen = 0;
        long deadline = System.nanoTime() + 30_000_000_000L;
        while (seen < count && System.nanoTime() < deadline) seen += consumer.poll(Duration.ofMillis(200)).count();
        if (seen < count) throw new IllegalStateException(seen + " of " + count + " records");
    }

    /** What the broker refuses is traffic too. */
    private static void attempt(KafkaFuture<?> call) throws Exception {
        try {
            call.get(15, TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException refused) {
            System.err.println(refused.getMessage());
        }
    }

    /** Two static members with the cooperative assignor; then the offsets are looked up by time, the group is taken apart. */
    private static void cooperative() throws Exception {
        String topic = "java-cooperative", group = "java-cooperative-group";
        Object[] settings = {"group.protocol", "classic", "heartbeat.interval.ms", 300,
            "partition.assignment.strategy", CooperativeStickyAssignor.class.getName(), "group.instance.id", "seat-1"};
        Object[] other = settings.clone();
        other[other.length - 1] = "seat-2";
        try (Admin admin = Admin.create(config())) {
            create(admin, topic, 4);
            produce(topic, 20);
            try (var first = consumer(group, settings); var second = consumer(group, other)) {
                first.subscribe(List.of(topic));
                drain(first, 20);
                first.commitSync();
                second.subscribe(List.of(topic));
                for (int n = 0; n < 30 && second.assignment().isEmpty(); n++) {
                    second.poll(Duration.ofMillis(100));
                    first.poll(Duration.ofMillis(100));
                }
                second.commitSync();
                Map<TopicPartition, Long> times = new HashMap<>();
                for (var partition : first.assignment()) times.put(partition, 0L);
                first.offsetsForTimes(times);
                first.enforceRebalance("the lab asks for it");
                for (int n = 0; n < 5; n++) {
                    first.poll(Duration.ofMillis(100));
                    second.poll(Duration.ofMillis(100));
                }
            }
            attempt(admin.describeConsumerGroups(List.of(group)).all());
            attempt(admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(
                List.of(new MemberToRemove("seat-1"), new MemberToRemove("seat-2"), new MemberToRemove("seat-3")))).all());
            attempt(admin.deleteConsumerGroups(List.of(group, "java-no-group")).all());
        }
    }

    /** A KIP-848 member whose subscription is a pattern that the broker resolves. */
    private static void regex() throws Exception {
        try (Admin admin = Admin.create(config())) {
            create(admin, "java-regex-a", 1);
            create(admin, "java-regex-b", 2);
            produce("java-regex-a", 5);
            produce("java-regex-b", 5);
            String group = "java-regex-group";
            try (var consumer = consumer(group, "group.protocol", "consumer", "group.remote.assignor", "range", "client.rack", "rack-1")) {
                consumer.subscribe(new SubscriptionPattern("java-regex-.*"));
                drain(consumer, 10);
                consumer.commitSync(Map.of(new TopicPartition("java-regex-a", 0), new OffsetAndMetadata(5, Optional.of(0), "by hand")));
                attempt(admin.describeConsumerGroups(List.of(group)).all());
            }
            attempt(admin.listConsumerGroupOffsets(Map.of(group, new ListConsumerGroupOffsetsSpec())).all());
            attempt(admin.deleteTopics(List.of("java-regex-a", "java-regex-b", "java-not-there")).all());
        }
    }

    /** A share group with implicit acknowledgement; its offsets are moved and deleted when it is empty. */
    private static void shareAdmin() throws Exception {
        String topic = "java-share-admin", group = "java-share-admin-pool";
        var partition = new TopicPartition(topic, 0);
        try (Admin admin = Admin.create(config())) {
            create(admin, topic, 2);
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, group), List.of(
                new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET)))).all().get();
            produce(topic, 10);
            try (var consumer = new KafkaShareConsumer<>(config("group.id", group), new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of(topic));
                int seen = 0;
                long deadline = System.nanoTime() + 20_000_000_000L;
                while (seen < 10 && System.nanoTime() < deadline) seen += consumer.poll(Duration.ofMillis(300)).count();
                consumer.commitSync();
                if (seen < 10) throw new IllegalStateException(seen + " of 10 records");
            }
            attempt(admin.listGroups(ListGroupsOptions.forShareGroups()).all());
            attempt(admin.alterShareGroupOffsets(group, Map.of(partition, 2L)).all());
            attempt(admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).all());
            attempt(admin.deleteShareGroupOffsets(group, Set.of(topic)).all());
            attempt(admin.deleteShareGroups(List.of(group)).all());
        }
    }

    /** A stream that counts, with the streams group protocol (KIP-1071): a changelog and a repartition topic of its own. */
    private static void streams() throws Exception {
        String from = "java-words", to = "java-counts", application = "java-counter";
        try (Admin admin = Admin.create(config())) {
            create(admin, from, 2);
            create(admin, to, 1);
            produce(from, 10);
            var builder = new StreamsBuilder();
            builder.stream(from, Consumed.with(Serdes.String(), Serdes.String()))
                .groupBy((key, value) -> value.substring(0, 5), Grouped.with(Serdes.String(), Serdes.String()))
                .count(Materialized.<String, Long>as(org.apache.kafka.streams.state.Stores.inMemoryKeyValueStore("counts"))
                    .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
                .toStream().to(to, Produced.with(Serdes.String(), Serdes.Long()));
            var settings = new Properties();
            settings.putAll(config("application.id", application, "group.protocol", "streams", "commit.interval.ms", 500,
                "fetch.max.wait.ms", 200, "auto.offset.reset", "earliest", "state.dir", System.getProperty("java.io.tmpdir") + "/kdissect-lab-streams"));
            try (var streams = new KafkaStreams(builder.build(), settings)) {
                streams.start();
                for (int n = 0; n < 100 && streams.state() != KafkaStreams.State.RUNNING; n++) Thread.sleep(100);
                try (var consumer = consumer("java-counts-reader", "group.protocol", "classic")) {
                    consumer.subscribe(List.of(to));
                    drain(consumer, 1);
                }
                attempt(admin.describeStreamsGroups(List.of(application)).all());
                attempt(admin.listGroups(ListGroupsOptions.forStreamsGroups()).all());
                streams.close(Duration.ofSeconds(10));
            }
            attempt(admin.listStreamsGroupOffsets(Map.of(application, new ListStreamsGroupOffsetsSpec())).all());
            attempt(admin.alterStreamsGroupOffsets(application, Map.of(new TopicPartition(from, 0), new OffsetAndMetadata(1))).all());
            attempt(admin.deleteStreamsGroupOffsets(application, Set.of(new TopicPartition(from, 1))).all());
            attempt(admin.deleteStreamsGroups(List.of(application)).all());
        }
    }
}
