"""Kafka's message schemas: the model, the tables with their loader, error codes, and which header a message has."""
