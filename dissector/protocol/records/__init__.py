"""Contents of `records` fields: record batches (magic 2), message sets (magic 0 and 1), compression, checksums."""
