import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Iterator;
import java.util.List;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/** Adds to the JSON of Apache's converter what that leaves out: unknown tagged fields, and what is in `records`. */
final class Truth {
    private Truth() {}

    static void complete(JsonNode json, Message struct, List<Schema.Field> fields, int version)
            throws ReflectiveOperationException {
        ObjectNode node = (ObjectNode) json;
        if (!struct.unknownTaggedFields().isEmpty()) {
            ArrayNode tags = node.putArray("unknownTaggedFields");
            for (RawTaggedField each : struct.unknownTaggedFields()) {
                tags.addObject().put("tag", each.tag()).put("data", each.data());
            }
        }
        for (Schema.Field field : fields) {
            // What the version lacks, and a tagged field at its default, is not in the JSON.
            if (node.hasNonNull(field.camel())) {
                descend(node, struct.getClass().getMethod(field.camel()).invoke(struct), field, version);
            }
        }
    }

    private static void descend(ObjectNode node, Object value, Schema.Field field, int version)
            throws ReflectiveOperationException {
        if (field.type().equals("records")) {
            node.set(field.camel(), BatchTruth.of(value));
        } else if (field.isStruct() && field.isArray()) {
            Iterator<?> elements = ((Iterable<?>) value).iterator();
            for (JsonNode each : node.get(field.camel())) {
                complete(each, (Message) elements.next(), field.fields(), version);
            }
        } else if (field.isStruct()) {
            complete(node.get(field.camel()), (Message) value, field.fields(), version);
        }
    }
}
