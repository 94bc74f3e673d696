"""The terminal user interface: list of exchanges, fields of the selected one, its bytes. No logic about Kafka."""
