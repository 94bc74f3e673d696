"""One conversation with a broker: what it offers, who is in its cluster, and the bytes of it as exchanges."""
