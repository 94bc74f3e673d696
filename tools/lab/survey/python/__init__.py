"""Programs of Python clients, run by the Python of an environment that has the client."""
