import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.jar.JarFile;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.utils.Utils;

/**
 * Prints messages as Apache's codec writes and reads them, one JSON object a line:
 * `message`, `version`, `header` (its version; requests and responses only), `bytes` (base64), `truth`.
 *
 * Arguments: a seed, how many random messages a version gets, jars with schemas. The same arguments give the same bytes.
 * A version's messages follow each other; the first is one that no setter was called on.
 * The truth is what Apache's reader made of the bytes; it must write the same bytes again, or the program fails.
 */
public final class WriteVectors {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final long seed;
    private final int count;
    private final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    private final Map<String, String> classes = new HashMap<>();

    private WriteVectors(long seed, int count) {
        this.seed = seed;
        this.count = count;
    }

    public static void main(String[] arguments) throws IOException, ReflectiveOperationException {
        WriteVectors writer = new WriteVectors(Long.parseLong(arguments[0]), Integer.parseInt(arguments[1]));
        for (int n = 2; n < arguments.length; n++) {
            try (JarFile jar = new JarFile(arguments[n])) {
                writer.write(jar);
            }
        }
        writer.out.flush();
    }

    private void write(JarFile jar) throws IOException, ReflectiveOperationException {
        jar.stream().map(Object::toString).filter(name -> name.endsWith("JsonConverter.class") && !name.contains("$"))
                .map(name -> name.replace('/', '.').replaceFirst("JsonConverter\\.class$", ""))
                .forEach(name -> classes.put(name.substring(name.lastIndexOf('.') + 1), name));
        for (Schema schema : Schema.in(jar)) {
            for (int version = schema.valid().low(); version <= schema.valid().high(); version++) {
                write(schema, (short) version);
            }
        }
    }

    private void write(Schema schema, short version) throws IOException, ReflectiveOperationException {
        Set<ByteBuffer> seen = new HashSet<>(); // with few fields, many kinds are one
        for (Kind kind : Kind.values()) {
            for (int n = 0; n < kind.variants(count); n++) {
                long mixed = seed * 31 + Objects.hash(schema.name(), version, kind.name(), n);
                Values values = new Values(kind, n, new Random(mixed));
                byte[] bytes = serialized(filled(schema, version, values), version);
                if (seen.add(ByteBuffer.wrap(bytes))) {
                    out.println(JSON.writeValueAsString(row(schema, version, bytes)));
                }
            }
        }
    }

    private Message filled(Schema schema, short version, Values values) throws ReflectiveOperationException {
        Message message = made(schema);
        boolean flexible = schema.flexible().contains(version);
        new Filler(message.getClass(), version, flexible, values).fill(message, schema.fields(), 0);
        return message;
    }

    private ObjectNode row(Schema schema, short version, byte[] bytes) throws ReflectiveOperationException {
        Message read = made(schema);
        ByteBufferAccessor source = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
        read.read(source, version);
        if (source.buffer().hasRemaining() || !ByteBuffer.wrap(bytes).equals(ByteBuffer.wrap(serialized(read, version)))) {
            throw new IllegalStateException(schema.name() + " v" + version + " is not what was written, when read");
        }
        ObjectNode row = JsonNodeFactory.instance.objectNode();
        row.put("message", schema.name()).put("version", version);
        if (schema.apiKey() >= 0 && (schema.type().equals("request") || schema.type().equals("response"))) {
            ApiMessageType api = ApiMessageType.fromApiKey((short) schema.apiKey());
            boolean request = schema.type().equals("request");
            row.put("header", request ? api.requestHeaderVersion(version) : api.responseHeaderVersion(version));
        }
        row.put("bytes", bytes);
        row.set("truth", truth(schema, version, read));
        return row;
    }

    private JsonNode truth(Schema schema, short version, Message read) throws ReflectiveOperationException {
        Class<?> converter = Class.forName(read.getClass().getName() + "JsonConverter");
        JsonNode json = (JsonNode) converter.getMethod("write", read.getClass(), short.class, boolean.class)
                .invoke(null, read, version, true);
        Truth.complete(json, read, schema.fields(), version);
        return json;
    }

    private Message made(Schema schema) throws ReflectiveOperationException {
        String name = classes.getOrDefault(schema.name() + "Data", classes.get(schema.name()));
        return (Message) Class.forName(name).getConstructor().newInstance();
    }

    private static byte[] serialized(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBufferAccessor target = new ByteBufferAccessor(ByteBuffer.allocate(message.size(cache, version)));
        message.write(target, cache, version);
        target.flip();
        return Utils.toArray(target.buffer());
    }
}
