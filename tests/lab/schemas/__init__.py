"""`make schemas`: the schema tables and error codes again, from nothing, out of the jars of Kafka's releases."""
