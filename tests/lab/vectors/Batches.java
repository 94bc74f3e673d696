import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.utils.Utils;

/**
 * `records` fields: batches that Apache writes, and what Apache reads in them.
 *
 * By reflection: 4.4 moved the classes to another package. The one that a setter takes says which.
 */
final class Batches {
    private static final int RECORD_DEPTH = 5; // below every structure that has records

    private Batches() {}

    /** Records for a setter that takes `type`: none, or one or two batches of any codec. */
    static Object make(Class<?> type, Values values) throws ReflectiveOperationException {
        ByteBuffer all = ByteBuffer.allocate(1 << 18);
        for (int left = values.count(RECORD_DEPTH, true); left > 0; left--) {
            all.put(buffer(batch(type, values)));
        }
        all.flip();
        return beside(type, "MemoryRecords").getMethod("readableRecords", ByteBuffer.class).invoke(null, all);
    }

    private static Object batch(Class<?> type, Values values) throws ReflectiveOperationException {
        Class<?> simple = beside(type, "SimpleRecord");
        Object records = Array.newInstance(simple, 1 + values.count(RECORD_DEPTH, true));
        for (int n = 0; n < Array.getLength(records); n++) {
            Array.set(records, n, simple.getConstructor(long.class, byte[].class, byte[].class, Header[].class)
                    .newInstance(1_700_000_000_000L + n * 1_000L, blob(values), blob(values), headers(values)));
        }
        Compression codec = values.kind() != Kind.RANDOM ? Compression.NONE : codec(values);
        long base = 0xFFFF & (int) values.of("int32", int.class);
        return beside(type, "MemoryRecords").getMethod("withRecords", long.class, Compression.class, records.getClass())
                .invoke(null, base, codec, records);
    }

    private static Compression codec(Values values) {
        return values.in(2) ? Compression.NONE
                : values.in(4) ? Compression.gzip().build()
                : values.in(3) ? Compression.snappy().build()
                : values.in(2) ? Compression.lz4().build()
                : Compression.zstd().build();
    }

    private static byte[] blob(Values values) {
        return values.makesNull(RECORD_DEPTH) ? null : values.bytes();
    }

    private static Header[] headers(Values values) {
        Header[] made = new Header[values.count(RECORD_DEPTH, true)];
        for (int n = 0; n < made.length; n++) {
            made[n] = new RecordHeader((String) values.of("string", String.class), blob(values));
        }
        return made;
    }

    /** The bytes of a `records` value that was read, and its records as Apache's reader sees them. */
    static ObjectNode truth(Object records) throws ReflectiveOperationException {
        ObjectNode node = JsonNodeFactory.instance.objectNode();
        node.put("bytes", Utils.toArray(buffer(records)));
        ArrayNode rows = node.putArray("records");
        Class<?> record = beside(records.getClass(), "Record");
        for (Object each : (Iterable<?>) records.getClass().getMethod("records").invoke(records)) {
            ObjectNode row = rows.addObject();
            row.put("offset", (long) record.getMethod("offset").invoke(each));
            row.put("timestamp", (long) record.getMethod("timestamp").invoke(each));
            row.put("key", Utils.toNullableArray((ByteBuffer) record.getMethod("key").invoke(each)));
            row.put("value", Utils.toNullableArray((ByteBuffer) record.getMethod("value").invoke(each)));
            ArrayNode headers = row.putArray("headers");
            for (Header header : (Header[]) record.getMethod("headers").invoke(each)) {
                headers.addObject().put("key", header.key()).put("value", header.value());
            }
        }
        return node;
    }

    private static ByteBuffer buffer(Object records) throws ReflectiveOperationException {
        return (ByteBuffer) records.getClass().getMethod("buffer").invoke(records);
    }

    private static Class<?> beside(Class<?> type, String name) throws ReflectiveOperationException {
        return Class.forName(type.getPackageName() + "." + name);
    }
}
