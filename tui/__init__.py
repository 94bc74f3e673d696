"""The screen: exchanges, the fields of the chosen one, its bytes. Has no logic about Kafka of its own."""
