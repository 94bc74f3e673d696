import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** Why groups rebalance, one scenario a cause: {@code LabRebalances SERVERS SCENARIO}. Members are threads, or processes
 * where one has to be killed or stopped. They fetch seldom, so that recordings are small. */
public final class LabRebalances {
    private static final String GROUP = "billing";
    private static final Map<String, String> CLASSIC = Map.of("group.protocol", "classic", "heartbeat.interval.ms", "1000",
        "session.timeout.ms", "10000");
    private static final Map<String, String> CONSUMER = Map.of("group.protocol", "consumer");
    private static String servers;

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        switch (arguments[1]) {
            case "member" -> process(arguments);
            case "clean" -> clean();
            case "poll-timeout" -> pollTimeout(CLASSIC, 3_000, 4_000, 11);
            case "poll-timeout-45s" -> pollTimeout(with(CLASSIC, "heartbeat.interval.ms", "5000", "session.timeout.ms", "45000"), 30_000, 45_000, 4);
            case "poll-timeout-76s" -> pollTimeout(with(CLASSIC, "heartbeat.interval.ms", "5000", "session.timeout.ms", "45000"), 60_000, 76_000, 4);
            case "poll-timeout-5min" -> pollTimeout(with(CLASSIC, "heartbeat.interval.ms", "15000", "session.timeout.ms", "45000"), 300_000, 310_000, 3);
            case "poll-timeout-kip848" -> pollTimeout(CONSUMER, 4_000, 6_000, 4);
            case "crash" -> crash(CLASSIC);
            case "crash-kip848" -> crash(CONSUMER);
            case "frozen" -> frozen(CLASSIC);
            case "frozen-kip848" -> frozen(CONSUMER);
            case "rolling-restart" -> rollingRestart(false, 0);
            case "rolling-restart-static" -> rollingRestart(true, 0);
            case "static-restart-too-slow" -> rollingRestart(true, 14_000);
            case "deployment" -> deployment(CLASSIC);
            case "deployment-kip848" -> deployment(CONSUMER);
            case "deployment-cooperative" -> deployment(with(CLASSIC, "partition.assignment.strategy", CooperativeStickyAssignor.class.getName()));
            case "subscription" -> subscription();
            case "partitions" -> partitions();
            case "enforced" -> enforced();
            case "removed" -> removed();
            case "same-instance" -> sameInstance(CLASSIC);
            case "same-instance-kip848" -> sameInstance(CONSUMER);
            case "protocols" -> protocols();
            case "coordinator" -> coordinator();
            default -> throw new IllegalArgumentException(arguments[1]);
        }
    }

    private static Map<String, String> with(Map<String, String> settings, String... pairs) {
        Map<String, String> all = new LinkedHashMap<>(settings);
        for (int n = 0; n < pairs.length; n += 2) all.put(pairs[n], pairs[n + 1]);
        return all;
    }

    /** As if nothing had been recorded on this broker before. */
    private static void clean() throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers, "enable.metrics.push", false))) {
            var topics = admin.listTopics().names().get();
            topics.retainAll(List.of("orders", "refunds"));
            admin.deleteTopics(topics).all().get();
            for (int n = 0; n < 30 && admin.listGroups().all().get().stream().anyMatch(each -> each.groupId().equals(GROUP)); n++) {
                try {
                    admin.deleteConsumerGroups(List.of(GROUP)).all().get();
                } catch (ExecutionException notEmpty) {
                    sleep(1_000);  // a static member is still in it
                }
            }
        }
    }

    private static void topics(int partitions, String... names) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers, "enable.metrics.push", false))) {
            for (String name : names) admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
        }
        for (String name : names) produce(name, 12);
    }

    private static void produce(String topic, int count) {
        Map<String, Object> config = Map.of("bootstrap.servers", servers, "linger.ms", 20, "enable.metrics.push", false);
        try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < count; n++) producer.send(new ProducerRecord<>(topic, "customer-" + n, "order " + n));
        }
    }

    private static KafkaConsumer<String, String> consumer(String clientId, Map<String, String> settings) {
        Map<String, Object> config = new HashMap<>(Map.of("bootstrap.servers", servers, "group.id", GROUP, "client.id", clientId,
            "auto.offset.reset", "earliest", "fetch.max.wait.ms", 5_000, "enable.metrics.push", false));
        config.putAll(settings);
        return new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer());
    }

    /** A consumer in a thread of its own, until it is closed. */
    private static final class Member implements AutoCloseable {
        private final CountDownLatch assigned = new CountDownLatch(1);
        private final Queue<java.util.function.Consumer<KafkaConsumer<String, String>>> orders = new ConcurrentLinkedQueue<>();
        private final Thread thread;
        private volatile boolean ends;
        private volatile int slow;
        private volatile long pause;

        Member(String clientId, Map<String, String> settings, String... topics) {
            thread = new Thread(() -> run(clientId, settings, List.of(topics)), clientId);
            thread.start();
        }

        private void run(String clientId, Map<String, String> settings, List<String> topics) {
            try (var consumer = consumer(clientId, settings)) {
                consumer.subscribe(topics);
                while (!ends) {
                    consumer.poll(Duration.ofMillis(200));
                    if (!consumer.assignment().isEmpty()) {
                        assigned.countDown();
                        if (slow > 0) {
                            slow--;
                            sleep(pause);
                        }
                    }
                    for (var order = orders.poll(); order != null; order = orders.poll()) order.accept(consumer);
                }
            } catch (org.apache.kafka.common.KafkaException refused) {
                System.err.println(clientId + ": " + refused.getMessage());
            }
        }

        Member joined() throws InterruptedException {
            if (!assigned.await(60, TimeUnit.SECONDS)) throw new IllegalStateException("nothing assigned");
            return this;
        }

        /** Process each of the next polls so long. */
        void processSlowly(int polls, long milliseconds) {
            pause = milliseconds;
            slow = polls;
        }

        void order(java.util.function.Consumer<KafkaConsumer<String, String>> order) { orders.add(order); }

        void ended() throws InterruptedException { thread.join(); }

        @Override public void close() {
            ends = true;
            try {
                thread.join(30_000);
            } catch (InterruptedException stopped) {
                throw new IllegalStateException(stopped);
            }
        }
    }

    private static void sleep(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    /** A member as a process; it says when it has partitions, and closes when its input ends. */
    private static Process spawned(String clientId, Map<String, String> settings) throws Exception {
        List<String> command = new ArrayList<>(List.of("java", "-Xmx128m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
            "-cp", System.getProperty("java.class.path"), "LabRebalances", servers, "member", clientId));
        settings.forEach((key, value) -> command.add(key + "=" + value));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        if (process.inputReader().readLine() == null) throw new IllegalStateException(clientId + " ended");
        return process;
    }

    private static void process(String[] arguments) throws Exception {
        Map<String, String> settings = new LinkedHashMap<>();
        for (int n = 3; n < arguments.length; n++) settings.put(arguments[n].split("=", 2)[0], arguments[n].split("=", 2)[1]);
        try (Member member = new Member(arguments[2], settings, "orders").joined()) {
            System.out.println("assigned");
            while (System.in.read() >= 0) continue;
        }
    }

    /** worker-a processes for longer than it may, again and again; worker-b does its work. */
    private static void pollTimeout(Map<String, String> settings, long allowed, long processing, int times) throws Exception {
        topics(6, "orders");
        var limited = with(settings, "max.poll.interval.ms", Long.toString(allowed));
        try (Member slow = new Member("worker-a", limited, "orders").joined(); Member other = new Member("worker-b", limited, "orders").joined()) {
            sleep(3_000);
            slow.processSlowly(times, processing);
            sleep(times * (processing + 400) + 3_000);
        }
    }

    private static void crash(Map<String, String> settings) throws Exception {
        topics(6, "orders");
        try (Member first = new Member("worker-a", settings, "orders").joined(); Member second = new Member("worker-b", settings, "orders").joined()) {
            Process third = spawned("worker-c", settings);
            sleep(4_000);
            third.destroyForcibly().waitFor();
            sleep(14_000);
        }
    }

    /** The process is stopped, as by a debugger or a node without memory; its connections stay open. */
    private static void frozen(Map<String, String> settings) throws Exception {
        topics(6, "orders");
        try (Member first = new Member("worker-a", settings, "orders").joined(); Member second = new Member("worker-b", settings, "orders").joined()) {
            Process third = spawned("worker-c", settings);
            sleep(4_000);
            new ProcessBuilder("kill", "-STOP", Long.toString(third.pid())).start().waitFor();
            sleep(15_000);
            new ProcessBuilder("kill", "-CONT", Long.toString(third.pid())).start().waitFor();
            sleep(5_000);
            third.outputWriter().close();
            third.waitFor();
        }
    }

    private static void rollingRestart(boolean isStatic, long away) throws Exception {
        topics(6, "orders");
        List<Member> members = new ArrayList<>();
        for (int n = 0; n < 3; n++) members.add(new Member("worker-" + n, seat(isStatic, n), "orders").joined());
        sleep(4_000);
        for (int n = 0; n < (away > 0 ? 1 : 3); n++) {
            members.get(n).close();
            sleep(Math.max(away, 1_000));
            members.set(n, new Member("worker-" + n, seat(isStatic, n), "orders").joined());
            sleep(2_500);
        }
        sleep(2_000);
        members.forEach(Member::close);
    }

    private static Map<String, String> seat(boolean isStatic, int number) {
        return isStatic ? with(CLASSIC, "group.instance.id", "seat-" + number) : CLASSIC;
    }

    private static void deployment(Map<String, String> settings) throws Exception {
        topics(12, "orders");
        List<Member> members = new ArrayList<>();
        for (int n = 0; n < 6; n++) {
            members.add(new Member("worker-" + n, settings, "orders").joined());
            sleep(n == 2 ? 6_000 : 500);
        }
        sleep(5_000);
        members.forEach(Member::close);
    }

    private static void subscription() throws Exception {
        topics(3, "orders", "refunds");
        try (Member first = new Member("worker-a", CLASSIC, "orders").joined(); Member second = new Member("worker-b", CLASSIC, "orders").joined()) {
            sleep(4_000);
            second.order(consumer -> consumer.subscribe(List.of("orders", "refunds")));
            sleep(5_000);
        }
    }

    private static void partitions() throws Exception {
        topics(3, "orders");
        var settings = with(CLASSIC, "metadata.max.age.ms", "2000");
        try (Member first = new Member("worker-a", settings, "orders").joined(); Member second = new Member("worker-b", settings, "orders").joined();
            Admin admin = Admin.create(Map.of("bootstrap.servers", servers, "enable.metrics.push", false))) {
            sleep(4_000);
            admin.createPartitions(Map.of("orders", NewPartitions.increaseTo(6))).all().get();
            sleep(6_000);
        }
    }

    private static void enforced() throws Exception {
        topics(3, "orders");
        try (Member first = new Member("worker-a", CLASSIC, "orders").joined(); Member second = new Member("worker-b", CLASSIC, "orders").joined()) {
            sleep(4_000);
            second.order(consumer -> consumer.enforceRebalance("a warm cache is on another host"));
            sleep(5_000);
        }
    }

    private static void removed() throws Exception {
        topics(3, "orders");
        try (Member first = new Member("worker-a", seat(true, 0), "orders").joined(); Member second = new Member("worker-b", seat(true, 1), "orders").joined();
            Admin admin = Admin.create(Map.of("bootstrap.servers", servers, "client.id", "operator", "enable.metrics.push", false))) {
            sleep(4_000);
            var options = new RemoveMembersFromConsumerGroupOptions(List.of(new MemberToRemove("seat-1")));
            options.reason("moved to another cluster");
            admin.removeMembersFromConsumerGroup(GROUP, options).all().get();
            sleep(5_000);
        }
    }

    /** Two processes with one instance id: the older one is fenced, or the newer one refused. */
    private static void sameInstance(Map<String, String> settings) throws Exception {
        topics(3, "orders");
        var seat = with(settings, "group.instance.id", "seat-1");
        Member first = new Member("worker-a", seat, "orders").joined();
        sleep(3_000);
        Member second = new Member("worker-b", seat, "orders");
        sleep(5_000);
        first.close();
        second.close();
    }

    private static void protocols() throws Exception {
        topics(3, "orders");
        var range = with(CLASSIC, "partition.assignment.strategy", RangeAssignor.class.getName());
        var robin = with(CLASSIC, "partition.assignment.strategy", RoundRobinAssignor.class.getName());
        try (Member first = new Member("worker-a", range, "orders").joined()) {
            sleep(2_000);
            new Member("worker-b", robin, "orders").ended();
            sleep(1_000);
        }
    }

    /** The other broker becomes the leader of the group's partition, and so its coordinator. */
    private static void coordinator() throws Exception {
        topics(3, "orders");
        try (Member first = new Member("worker-a", CLASSIC, "orders").joined(); Member second = new Member("worker-b", CLASSIC, "orders").joined();
            Admin admin = Admin.create(Map.of("bootstrap.servers", servers, "enable.metrics.push", false))) {
            sleep(4_000);
            int now = admin.describeConsumerGroups(List.of(GROUP)).all().get().get(GROUP).coordinator().id();
            Map<TopicPartition, Optional<NewPartitionReassignment>> moved = new HashMap<>();
            for (int n = 0; n < 4; n++)
                moved.put(new TopicPartition("__consumer_offsets", n), Optional.of(new NewPartitionReassignment(List.of(3 - now, now))));
            admin.alterPartitionReassignments(moved).all().get();
            sleep(1_000);
            admin.electLeaders(org.apache.kafka.common.ElectionType.PREFERRED, moved.keySet()).all().get();
            sleep(8_000);
        }
    }
}
