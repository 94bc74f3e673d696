import java.util.TreeSet;

import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;

/** Prints the name of every setting that the consumer and the producer of kafka-clients have, one a line, sorted. */
public class PrintSettings {
    public static void main(String[] arguments) {
        TreeSet<String> names = new TreeSet<>(ConsumerConfig.configNames());
        names.addAll(ProducerConfig.configNames());
        names.forEach(System.out::println);
    }
}
