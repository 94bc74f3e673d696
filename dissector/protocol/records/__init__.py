"""What a `records` field holds: record batches (magic 2), their compression and checksums."""
