"""The importer: makes tables from Kafka's jars, for every new Kafka release and for releases that a user imports."""
