"""The Kafka protocol: schemas compiled to readers, record batches, the tree of a frame. Knows nothing of TCP."""
