"""The proxy beside other relays: what it costs, what it adds, what it holds."""
