"""The importer: Kafka's jars in, the tables out. Run with every new Kafka release; nothing else imports it."""
