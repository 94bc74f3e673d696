/** What a message is filled with. */
enum Kind {
    /** As the constructor leaves it; first, for the tests know it by that. */
    DEFAULT,
    /** Null wherever a null may stand, from one depth of nested structures on; arrays have one element. */
    NULL,
    /** Everything present, and empty. */
    EMPTY,
    /** The least integers, minus infinity; one element an array, nothing null. */
    LOW,
    /** The greatest integers, not-a-number, a tag that nobody knows at every level. */
    HIGH,
    RANDOM;

    private static final int DEPTHS = 6; // no message nests its structures deeper

    /** How many messages of this kind a version gets: one for each depth, `random` of the last, else one. */
    int variants(int random) {
        return switch (this) {
            case NULL -> DEPTHS;
            case RANDOM -> random;
            default -> 1;
        };
    }
}
