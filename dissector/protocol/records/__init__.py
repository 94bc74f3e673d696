"""What a `records` field holds: record batches (magic 2), message sets (magic 0 and 1), compression, checksums."""
