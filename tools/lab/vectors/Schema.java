import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/** A message as the schema file in Kafka's jar has it: which fields exist, are nullable, are tagged in which versions. */
record Schema(String name, String type, int apiKey, Range valid, Range flexible, List<Field> fields) {

    private static final ObjectMapper JSON = new ObjectMapper().enable(JsonParser.Feature.ALLOW_COMMENTS);

    /** Versions from low to high; low above high is none. */
    record Range(int low, int high) {
        static Range parse(JsonNode text) {
            if (text == null || text.asText().equals("none")) {
                return new Range(1, 0);
            }
            String[] ends = text.asText().replaceFirst("\\+$", "-" + Short.MAX_VALUE).split("-");
            return new Range(Integer.parseInt(ends[0]), Integer.parseInt(ends[ends.length - 1]));
        }

        boolean contains(int version) {
            return low <= version && version <= high;
        }
    }

    /** A field; `fields` are those of its structure, and empty where it is none. */
    record Field(String name, String type, Range versions, Range nullable, Range tagged, List<Field> fields) {
        boolean isArray() {
            return type.startsWith("[]");
        }

        String element() {
            return isArray() ? type.substring(2) : type;
        }

        boolean isStruct() {
            return Character.isUpperCase(element().charAt(0));
        }

        String capitalised() {
            return Character.toUpperCase(name.charAt(0)) + name.substring(1);
        }

        /** The name of the getter, and of the value in the converter's JSON. */
        String camel() {
            return Character.toLowerCase(name.charAt(0)) + name.substring(1);
        }
    }

    /** All messages that a jar has schemas of and that have a version left, by name. */
    static List<Schema> in(JarFile jar) throws IOException {
        List<Schema> found = new ArrayList<>();
        for (JarEntry entry : jar.stream().sorted((a, b) -> a.getName().compareTo(b.getName())).toList()) {
            if (entry.getName().matches("(.*/)?(message|metadata)/[^/]+\\.json")) {
                JsonNode root = JSON.readTree(jar.getInputStream(entry));
                if (!root.get("validVersions").asText().equals("none")) {
                    found.add(of(root));
                }
            }
        }
        return found;
    }

    private static Schema of(JsonNode root) {
        Map<String, JsonNode> shared = new HashMap<>();
        root.path("commonStructs").forEach(each -> shared.put(each.get("name").asText(), each.get("fields")));
        return new Schema(
                root.get("name").asText(),
                root.get("type").asText(),
                root.path("apiKey").asInt(-1),
                Range.parse(root.get("validVersions")),
                Range.parse(root.get("flexibleVersions")),
                fields(root.get("fields"), shared));
    }

    private static List<Field> fields(JsonNode rows, Map<String, JsonNode> shared) {
        List<Field> found = new ArrayList<>();
        for (JsonNode row : rows) {
            String type = row.get("type").asText();
            JsonNode below = row.has("fields") ? row.get("fields") : shared.get(type.replace("[]", ""));
            Range tagged = Range.parse(row.get("taggedVersions"));
            found.add(new Field(
                    row.get("name").asText(),
                    type,
                    row.has("versions") ? Range.parse(row.get("versions")) : tagged,
                    Range.parse(row.get("nullableVersions")),
                    tagged,
                    below == null ? List.of() : fields(below, shared)));
        }
        return found;
    }
}
