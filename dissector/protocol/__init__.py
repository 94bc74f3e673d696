"""The Kafka protocol: schema tables compiled to readers, record batches, and the tree of a frame. Knows nothing of TCP."""
