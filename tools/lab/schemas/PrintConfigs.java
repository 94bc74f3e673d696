import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import java.util.stream.Collectors;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.ConfigKey;

/** Prints name and type of every config of brokers, topics, groups, client metrics and clients, as JSON, sorted. */
public class PrintConfigs {
    private static final List<String> DEFINED_IN = List.of(
        "kafka.server.DynamicConfig$Broker$",
        "kafka.server.KafkaConfig",
        "kafka.server.KafkaConfig$",
        "org.apache.kafka.clients.admin.AdminClientConfig",
        "org.apache.kafka.clients.consumer.ConsumerConfig",
        "org.apache.kafka.clients.producer.ProducerConfig",
        "org.apache.kafka.coordinator.group.GroupConfig",
        "org.apache.kafka.server.config.AbstractKafkaConfig",
        "org.apache.kafka.server.config.QuotaConfig",
        "org.apache.kafka.server.metrics.ClientMetricsConfigs",
        "org.apache.kafka.storage.internals.log.LogConfig");

    public static void main(String[] arguments) throws Exception {
        TreeMap<String, String> types = new TreeMap<>();
        for (String name : DEFINED_IN) {
            for (ConfigKey key : keys(name)) {
                types.merge(key.name, key.type.name(), (one, other) -> one.equals("PASSWORD") ? one : other);
            }
        }
        System.out.println(types.entrySet().stream()
            .map(each -> "  \"" + each.getKey() + "\": \"" + each.getValue() + "\"")
            .collect(Collectors.joining(",\n", "{\n", "\n}")));
    }

    /** Of all definitions that a class has, in fields or from methods, private ones too; not every release has each. */
    private static List<ConfigKey> keys(String name) throws Exception {
        List<ConfigKey> found = new ArrayList<>();
        Class<?> where;
        try {
            where = Class.forName(name);
        } catch (ClassNotFoundException error) {
            return found;
        }
        Object module = null;
        for (var field : where.getDeclaredFields()) {
            if (field.getName().equals("MODULE$")) {
                module = field.get(null);
            }
        }
        for (var field : where.getDeclaredFields()) {
            if (ConfigDef.class.isAssignableFrom(field.getType()) && (module != null || Modifier.isStatic(field.getModifiers()))) {
                field.setAccessible(true);
                add(found, field.get(module));
            }
        }
        for (var method : where.getDeclaredMethods()) {
            boolean is = ConfigDef.class.isAssignableFrom(method.getReturnType()) && method.getParameterCount() == 0;
            if (is && (module != null || Modifier.isStatic(method.getModifiers()))) {
                method.setAccessible(true);
                add(found, method.invoke(module));
            }
        }
        return found;
    }

    private static void add(List<ConfigKey> found, Object definition) {
        if (definition != null) {
            found.addAll(((ConfigDef) definition).configKeys().values());
        }
    }
}
