import java.io.IOException;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.*;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.connect.cli.ConnectDistributed;
import org.apache.kafka.connect.mirror.MirrorMaker;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;

/**
 * What is built on Java's clients, with 100 records as in the survey's plain scenario:
 * {@code Frameworks streams|connect|mirror-maker SERVERS SCENARIO TOPIC GROUP}. Each works for some seconds; Connect and
 * MirrorMaker end by their shutdown hooks.
 */
public final class Frameworks {
    private static final int SECONDS = 20, START_SECONDS = 90;
    private static String servers, topic, group;
    private static Path folder;

    public static void main(String[] arguments) throws Exception {
        servers = arguments[1];
        topic = arguments[3];
        group = arguments[4];
        folder = Files.createDirectories(Path.of(System.getProperty("java.io.tmpdir"), "survey-" + group));
        switch (arguments[0]) {
            case "streams" -> streams();
            case "connect" -> connect();
            case "mirror-maker" -> mirror();
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        System.exit(0);
    }

    private static String order(int n) {
        return "order " + n + ": " + "teacup ".repeat(12);
    }

    private static void produce() {
        Map<String, Object> config = Map.of("bootstrap.servers", servers);
        try (var producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < 100; n++) producer.send(new ProducerRecord<>(topic, "customer-" + n % 7, order(n)));
        }
    }

    /** Counts the records of each key in a table with a changelog, into another topic. */
    private static void streams() throws Exception {
        produce();
        var strings = Serdes.String();
        var builder = new StreamsBuilder();
        builder.stream(topic, Consumed.with(strings, strings)).groupByKey(Grouped.with(strings, strings)).count().toStream()
            .to(topic + "-counts", Produced.with(strings, Serdes.Long()));
        var config = new Properties();
        config.putAll(Map.of("bootstrap.servers", servers, "application.id", group, "state.dir", folder.toString()));
        try (var streams = new KafkaStreams(builder.build(), config)) {
            streams.start();
            Thread.sleep(SECONDS * 1000);
        }
    }

    /** A worker of a group of its own reads a file into the topic, and writes the topic to another file. */
    private static void connect() throws Exception {
        Path input = folder.resolve("orders.txt");
        Files.write(input, IntStream.range(0, 100).mapToObj(Frameworks::order).collect(Collectors.toList()));
        int port;
        try (var free = new ServerSocket(0)) {
            port = free.getLocalPort();
        }
        String converter = "org.apache.kafka.connect.storage.StringConverter", address = "http://127.0.0.1:" + port;
        Path worker = properties("worker", Map.of("bootstrap.servers", servers, "group.id", group, "listeners", address,
            "key.converter", converter, "value.converter", converter, "offset.flush.interval.ms", "2000"),
            Stream.of("config", "offset", "status").flatMap(kind -> Stream.of(
                Map.entry(kind + ".storage.topic", group + "-" + kind), Map.entry(kind + ".storage.replication.factor", "1"))));
        inBackground(() -> ConnectDistributed.main(new String[] {worker.toString()}));
        String file = "org.apache.kafka.connect.file.FileStream";
        begin(address, "source", Map.of("connector.class", file + "SourceConnector", "file", input.toString(), "topic", topic));
        begin(address, "sink", Map.of("connector.class", file + "SinkConnector", "file", input + ".copy", "topics", topic));
        Thread.sleep(SECONDS * 1000);
    }

    private static void begin(String address, String name, Map<String, String> config) throws Exception {
        String body = config.entrySet().stream().map(each -> '"' + each.getKey() + "\":\"" + each.getValue() + '"')
            .collect(Collectors.joining(",", "{", "}"));
        var request = HttpRequest.newBuilder(URI.create(address + "/connectors/" + name + "/config"))
            .header("Content-Type", "application/json").PUT(HttpRequest.BodyPublishers.ofString(body)).build();
        for (int n = 0; n < 60; n++) {
            try {
                if (HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).statusCode() < 300) return;
            } catch (IOException notYet) { }
            Thread.sleep(500);
        }
        throw new IllegalStateException("the worker does not take " + name);
    }

    /** Copies the topic within its cluster, which has two names, to a topic with the first name before its own. */
    private static void mirror() throws Exception {
        produce();
        String tea = group.replace('.', '-') + "-tea", shop = tea.replace("tea", "shop"), flow = tea + "->" + shop + ".";
        var config = new HashMap<>(Map.of("clusters", tea + "," + shop, tea + ".bootstrap.servers", servers,
            shop + ".bootstrap.servers", servers, flow + "enabled", "true", flow + "topics", topic, "replication.factor", "1",
            flow + "consumer.auto.offset.reset", "earliest", "emit.checkpoints.interval.seconds", "3",
            "sync.group.offsets.enabled", "true"));
        for (String kind : List.of("checkpoints", "heartbeats", "offset-syncs"))
            config.put(kind + ".topic.replication.factor", "1");
        for (String kind : List.of("offset", "status", "config")) config.put(kind + ".storage.replication.factor", "1");
        Path file = properties("mirror", config, Stream.of());
        inBackground(() -> MirrorMaker.main(new String[] {file.toString()}));
        for (int n = 0; n < START_SECONDS && !runs("task-thread-MirrorSourceConnector"); n++) Thread.sleep(1000);
        Thread.sleep(SECONDS * 1000);
    }

    private static boolean runs(String thread) {
        return Thread.getAllStackTraces().keySet().stream().anyMatch(each -> each.getName().startsWith(thread));
    }

    private static Path properties(String name, Map<String, String> config, Stream<Map.Entry<String, String>> more)
        throws IOException {
        var lines = Stream.concat(config.entrySet().stream(), more).map(each -> each.getKey() + "=" + each.getValue());
        return Files.write(folder.resolve(name + ".properties"), lines.collect(Collectors.toList()));
    }

    private static void inBackground(Runnable work) {
        var thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
    }
}
