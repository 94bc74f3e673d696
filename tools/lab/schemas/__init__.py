"""`make schemas`: the schema tables, error codes and enums again, from nothing, out of the jars of Kafka's releases."""
