import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;

/**
 * `records` fields as Apache writes them: of each magic and codec, of producers with an id and without.
 *
 * By reflection: 3.8 changed what a codec is, 4.4 moved the classes to another package. The one that a setter takes says which.
 */
final class Batches {
    private static final int RECORD_DEPTH = 5; // below every structure that has records
    private static final long TIME = 1_700_000_000_000L;

    private final Class<?> type;
    private final Values values;

    private Batches(Class<?> type, Values values) {
        this.type = type;
        this.values = values;
    }

    /** Records for a setter that takes `type`: none, or one batch or more, their offsets growing. */
    static Object make(Class<?> type, Values values) throws ReflectiveOperationException {
        ByteBuffer all = ByteBuffer.allocate(1 << 18);
        long offset = 0xFFFF & (int) values.of("int32", int.class);
        for (int left = values.count(RECORD_DEPTH, true); left > 0; left--) {
            Object records = new Batches(type, values).batch(offset);
            all.put((ByteBuffer) records.getClass().getMethod("buffer").invoke(records));
            offset += 1_000;
        }
        all.flip();
        return beside(type, "MemoryRecords").getMethod("readableRecords", ByteBuffer.class).invoke(null, all);
    }

    /** A class of the package that `type` is of. */
    static Class<?> beside(Class<?> type, String name) throws ReflectiveOperationException {
        return Class.forName(type.getPackageName() + "." + name);
    }

    private Object batch(long offset) throws ReflectiveOperationException {
        boolean random = values.kind() == Kind.RANDOM;
        int magic = random && values.in(3) ? values.in(2) ? 0 : 1 : 2;
        Object records = withRecords((byte) magic, offset, random && magic == 2 && values.in(2), records(magic));
        if (random && magic > 0 && values.in(4)) {
            // As the broker does with a topic whose time is that of appending.
            Method append = beside(type, "MutableRecordBatch").getMethod("setMaxTimestamp", TimestampType.class, long.class);
            for (Object each : (Iterable<?>) records.getClass().getMethod("batches").invoke(records)) {
                append.invoke(each, TimestampType.LOG_APPEND_TIME, TIME + 7);
            }
        }
        return records;
    }

    private Object records(int magic) throws ReflectiveOperationException {
        Class<?> simple = beside(type, "SimpleRecord");
        Object records = Array.newInstance(simple, 1 + values.count(RECORD_DEPTH, true));
        for (int n = 0; n < Array.getLength(records); n++) {
            Header[] headers = magic < 2 ? new Header[0] : headers();
            Array.set(records, n, simple.getConstructor(long.class, byte[].class, byte[].class, Header[].class)
                    .newInstance(TIME + n * 1_000L, blob(), blob(), headers));
        }
        return records;
    }

    private byte[] blob() {
        return values.makesNull(RECORD_DEPTH) ? null : values.bytes();
    }

    private Header[] headers() {
        Header[] made = new Header[values.count(RECORD_DEPTH, true)];
        for (int n = 0; n < made.length; n++) {
            made[n] = new RecordHeader((String) values.of("string", String.class), blob());
        }
        return made;
    }

    private Object withRecords(byte magic, long offset, boolean producer, Object records)
            throws ReflectiveOperationException {
        Class<?> codecs = codecs();
        return beside(type, "MemoryRecords").getMethod("withRecords", byte.class, long.class, codecs, TimestampType.class,
                        long.class, short.class, int.class, int.class, boolean.class, records.getClass())
                .invoke(null, magic, offset, codec(codecs, values.kind() == Kind.RANDOM ? values.codec(magic) : "none"),
                        TimestampType.CREATE_TIME, producer ? 4_000_000_000L : -1L, (short) (producer ? 3 : -1),
                        producer ? 17 : -1, (int) values.of("int32", int.class), producer && values.in(2), records);
    }

    /** What `withRecords` takes for a codec: a constant before 3.8, an object since. */
    private Class<?> codecs() throws ReflectiveOperationException {
        try {
            return Class.forName("org.apache.kafka.common.compress.Compression");
        } catch (ClassNotFoundException before) {
            return beside(type, "CompressionType");
        }
    }

    private Object codec(Class<?> codecs, String name) throws ReflectiveOperationException {
        Class<?> constants = beside(type, "CompressionType");
        Object constant = constants.getMethod("forName", String.class).invoke(null, name);
        if (codecs == constants) {
            return constant;
        }
        Object builder = codecs.getMethod("of", constants).invoke(null, constant);
        return Class.forName(codecs.getName() + "$Builder").getMethod("build").invoke(builder);
    }
}
