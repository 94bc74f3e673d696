"""Records of exchanges as people look for them: topic, partition, offset, key, value, headers, opened on demand."""
