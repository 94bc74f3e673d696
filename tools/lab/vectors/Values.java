import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.types.RawTaggedField;

/** Values that are no structures, of the Java types that the generated setters take. */
final class Values {
    private static final int[] ALPHABET = "abcXYZ019._- äßñ漢字✓\u0000\u001b\u202e\t\"\\😀🦀𝒳".codePoints().toArray();
    private static final double[] FLOATS = {0.0, -0.0, 1.5, -2.25e300, Double.MIN_VALUE, Double.POSITIVE_INFINITY, Double.NaN};
    private static final String[] CODECS = {"gzip", "snappy", "lz4", "zstd"}; // the last one since magic 2
    private static final int LARGE = 16_400; // more than two bytes of a varint can count
    private static final int MOST_LARGE = 2; // a message: nested arrays would make megabytes of them

    private final Kind kind;
    private final int variant;
    private final Random chance;
    private int large = 0;

    Values(Kind kind, int variant, Random chance) {
        this.kind = kind;
        this.variant = variant;
        this.chance = chance;
    }

    Kind kind() {
        return kind;
    }

    boolean in(int often) {
        return chance.nextInt(often) == 0;
    }

    /** Whether what may be null, at a depth of nested structures, is. */
    boolean makesNull(int depth) {
        return kind == Kind.NULL && depth >= variant || kind == Kind.RANDOM && in(6);
    }

    /** Whether a field is left as it is: what makes tagged fields stay away, now and then. */
    boolean leaves() {
        return kind == Kind.DEFAULT || kind == Kind.RANDOM && in(8);
    }

    /** How many elements an array gets at a depth. */
    int count(int depth, boolean ofStructs) {
        return switch (kind) {
            case DEFAULT, EMPTY -> 0;
            case NULL, LOW, HIGH -> 1;
            case RANDOM -> !ofStructs && in(60) ? 128 + chance.nextInt(20) : chance.nextInt(depth > 1 ? 3 : 4);
        };
    }

    /** A value of a type that has no fields; `setter` is the Java type that takes it. */
    Object of(String type, Class<?> setter) {
        return switch (type) {
            case "bool" -> kind == Kind.RANDOM ? chance.nextBoolean() : kind == Kind.HIGH;
            case "int8" -> (byte) integer(Byte.MIN_VALUE, Byte.MAX_VALUE);
            case "int16" -> (short) integer(Short.MIN_VALUE, Short.MAX_VALUE);
            case "uint16" -> (int) integer(0, 0xFFFF);
            case "int32" -> (int) integer(Integer.MIN_VALUE, Integer.MAX_VALUE);
            case "uint32" -> integer(0, 0xFFFFFFFFL);
            case "int64" -> integer(Long.MIN_VALUE, Long.MAX_VALUE);
            case "float64" -> floating();
            case "uuid" -> new Uuid(integer(Long.MIN_VALUE, Long.MAX_VALUE), integer(Long.MIN_VALUE, Long.MAX_VALUE));
            case "string" -> text();
            case "bytes" -> setter == ByteBuffer.class ? ByteBuffer.wrap(bytes()) : bytes();
            default -> throw new IllegalStateException("no values of type " + type);
        };
    }

    private long integer(long low, long high) {
        return switch (kind) {
            case DEFAULT, NULL, EMPTY -> 0;
            case LOW -> low;
            case HIGH -> high;
            case RANDOM -> switch (chance.nextInt(6)) {
                case 0 -> low;
                case 1 -> high;
                case 2 -> 0;
                case 3 -> Math.max(low, -1);
                default -> Math.max(low, Math.min(high, chance.nextLong() >> chance.nextInt(64)));
            };
        };
    }

    private double floating() {
        return switch (kind) {
            case DEFAULT, NULL, EMPTY -> 0;
            case LOW -> Double.NEGATIVE_INFINITY;
            case HIGH -> Double.NaN;
            case RANDOM -> in(2) ? chance.nextGaussian() : FLOATS[chance.nextInt(FLOATS.length)];
        };
    }

    private String text() {
        return switch (kind) {
            case DEFAULT, NULL, EMPTY, LOW -> "";
            case HIGH -> Character.toString(Character.MAX_CODE_POINT);
            case RANDOM -> letters(length()).toString();
        };
    }

    private StringBuilder letters(int length) {
        StringBuilder text = new StringBuilder();
        for (int n = chance.nextInt(12); n > 0; n--) {
            text.appendCodePoint(ALPHABET[chance.nextInt(ALPHABET.length)]);
        }
        while (text.length() < length) { // repeated, so that the file of vectors stays small
            text.append("orders-");
        }
        return text;
    }

    byte[] bytes() {
        if (kind == Kind.DEFAULT || kind == Kind.NULL || kind == Kind.EMPTY) {
            return new byte[0];
        }
        byte[] raw = new byte[Math.max(length(), chance.nextInt(9))];
        for (int n = 0; n < Math.min(raw.length, 16); n++) {
            raw[n] = (byte) chance.nextInt(256);
        }
        return raw;
    }

    /** The name of a codec that record batches of this magic may have: none, as often as all others. */
    String codec(int magic) {
        return in(2) ? "none" : CODECS[chance.nextInt(magic < 2 ? CODECS.length - 1 : CODECS.length)];
    }

    /** The least length of a string: mostly none, now and then beyond one byte of a varint, seldom beyond two. */
    private int length() {
        if (kind == Kind.RANDOM && large < MOST_LARGE && in(150)) {
            large++;
            return LARGE + chance.nextInt(2_000);
        }
        return kind == Kind.RANDOM && in(40) ? 128 + chance.nextInt(200) : 0;
    }

    /** Tagged fields that no release knows, in the order of their tags as the writer wants them; mostly none. */
    List<RawTaggedField> unknownTags() {
        List<RawTaggedField> tags = new ArrayList<>();
        if (kind == Kind.HIGH || kind == Kind.RANDOM && in(6)) {
            tags.add(new RawTaggedField(100 + chance.nextInt(60), bytes()));
            if (in(3)) {
                tags.add(new RawTaggedField(10_000 + chance.nextInt(1 << 20), bytes()));
            }
        }
        return tags;
    }
}
