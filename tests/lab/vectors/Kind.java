/** What a message is filled with. All but `RANDOM` are made once a version. */
enum Kind {
    /** As the constructor leaves it. */
    DEFAULT,
    /** Null wherever a null may stand; arrays that may not be null have one element. */
    NULL,
    /** Everything present, and empty. */
    EMPTY,
    /** The least integers, minus infinity; one element an array, nothing null. */
    LOW,
    /** The greatest integers, not-a-number, a tag that nobody knows at every level. */
    HIGH,
    RANDOM
}
