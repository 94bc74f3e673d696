"""The importer: Kafka's jars in, tables out. Run with every new Kafka release, and for releases that a user imports."""
