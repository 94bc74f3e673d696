import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.apache.kafka.common.protocol.Message;

/** Sets the fields that a version has, and no others: Apache's writer refuses what a version can't carry. */
final class Filler {
    private final Class<?> outer;
    private final int version;
    private final boolean flexible;
    private final Values values;

    Filler(Class<?> outer, int version, boolean flexible, Values values) {
        this.outer = outer;
        this.version = version;
        this.flexible = flexible;
        this.values = values;
    }

    void fill(Message struct, List<Schema.Field> fields, int depth) throws ReflectiveOperationException {
        for (Schema.Field field : fields) {
            if (field.versions().contains(version)) {
                set(struct, field, depth);
            }
        }
        if (flexible) {
            struct.unknownTaggedFields().addAll(values.unknownTags());
        }
    }

    private void set(Message struct, Schema.Field field, int depth) throws ReflectiveOperationException {
        Method setter = setter(struct.getClass(), "set" + field.capitalised());
        boolean nullable = field.nullable().contains(version);
        // A default may be a null that this version can't have: such a field is set whatever the kind.
        boolean valid = nullable || struct.getClass().getMethod(field.camel()).invoke(struct) != null;
        if (valid && values.leaves()) {
            return;
        }
        Object value = nullable && values.makesNull(depth) ? null : value(field, setter.getParameterTypes()[0], depth);
        setter.invoke(struct, value);
    }

    private Object value(Schema.Field field, Class<?> type, int depth) throws ReflectiveOperationException {
        if (field.isArray()) {
            return array(field, type, depth);
        }
        if (field.isStruct()) {
            return struct(field, depth);
        }
        return field.type().equals("records") ? Batches.make(type, values) : values.of(field.type(), type);
    }

    @SuppressWarnings("unchecked") // a List<Integer> or a collection of structures: what the setter takes
    private Object array(Schema.Field field, Class<?> type, int depth) throws ReflectiveOperationException {
        Collection<Object> elements = type == List.class
                ? new ArrayList<>()
                : (Collection<Object>) type.getConstructor().newInstance();
        for (int left = values.count(depth, field.isStruct()); left > 0; left--) {
            elements.add(field.isStruct() ? struct(field, depth) : values.of(field.element(), byte[].class));
        }
        return elements;
    }

    private Message struct(Schema.Field field, int depth) throws ReflectiveOperationException {
        Class<?> type = Class.forName(outer.getName() + "$" + field.element(), true, outer.getClassLoader());
        Message made = (Message) type.getConstructor().newInstance();
        fill(made, field.fields(), depth + 1);
        return made;
    }

    private static Method setter(Class<?> type, String name) throws NoSuchMethodException {
        for (Method method : type.getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == 1) {
                return method;
            }
        }
        throw new NoSuchMethodException(type.getName() + "." + name);
    }
}
