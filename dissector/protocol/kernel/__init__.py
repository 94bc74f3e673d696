"""Kafka's bytes read by native code: C functions in one shared object, called with addresses of numpy arrays."""
