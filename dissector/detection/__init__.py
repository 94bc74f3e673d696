"""Protocol detection: which connections are Kafka, which end is the client, and what the others are."""
