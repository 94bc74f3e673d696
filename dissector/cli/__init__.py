"""The command line: `kdissect`. Prints; knows nothing of Kafka."""
