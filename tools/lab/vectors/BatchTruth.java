import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.utils.Utils;

/** What Apache's reader finds in a `records` value: its bytes, its batches by the names of the getters, their records. */
final class BatchTruth {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String[] OF_ALL = {"magic", "isValid"};
    private static final String[] OF_MAGIC_2 = {
        "baseOffset", "lastOffset", "partitionLeaderEpoch", "maxTimestamp", "producerId", "producerEpoch", "baseSequence",
        "isTransactional", "isControlBatch",
    };

    private BatchTruth() {}

    static ObjectNode of(Object records) throws ReflectiveOperationException {
        ObjectNode node = JsonNodeFactory.instance.objectNode();
        node.put("bytes", Utils.toArray((ByteBuffer) records.getClass().getMethod("buffer").invoke(records)));
        ArrayNode batches = node.putArray("batches");
        for (Object each : (Iterable<?>) records.getClass().getMethod("batches").invoke(records)) {
            batches.add(batch(each));
        }
        return node;
    }

    private static ObjectNode batch(Object batch) throws ReflectiveOperationException {
        ObjectNode row = JsonNodeFactory.instance.objectNode();
        put(row, batch, OF_ALL);
        if (row.get("magic").asInt() == 2) {
            put(row, batch, OF_MAGIC_2);
        }
        Object codec = value(batch, "RecordBatch", "compressionType");
        row.put("compression", (String) codec.getClass().getField("name").get(codec));
        row.put("timestampType", value(batch, "RecordBatch", "timestampType").toString());
        ArrayNode rows = row.putArray("records");
        for (Object each : (Iterable<?>) batch) {
            rows.add(record(each));
        }
        return row;
    }

    private static void put(ObjectNode row, Object batch, String[] getters) throws ReflectiveOperationException {
        for (String getter : getters) {
            row.set(getter, JSON.valueToTree(value(batch, "RecordBatch", getter)));
        }
    }

    private static ObjectNode record(Object record) throws ReflectiveOperationException {
        ObjectNode row = JsonNodeFactory.instance.objectNode();
        row.put("offset", (long) value(record, "Record", "offset"));
        row.put("timestamp", (long) value(record, "Record", "timestamp"));
        row.put("key", Utils.toNullableArray((ByteBuffer) value(record, "Record", "key")));
        row.put("value", Utils.toNullableArray((ByteBuffer) value(record, "Record", "value")));
        ArrayNode headers = row.putArray("headers");
        for (Header header : (Header[]) value(record, "Record", "headers")) {
            headers.addObject().put("key", header.key()).put("value", header.value());
        }
        return row;
    }

    /** The value of a getter; the classes that have it are not public, the interface is. */
    private static Object value(Object object, String type, String getter) throws ReflectiveOperationException {
        return Batches.beside(object.getClass(), type).getMethod(getter).invoke(object);
    }
}
