"""The lab: a real broker, real clients, a sniffer between them. Records `pcaps/`; not needed to run the tests."""
