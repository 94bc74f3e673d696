"""Whether bytes are Kafka, which end is the client, and which other protocol they are."""
