"""One conversation with a broker: its advertised versions, its cluster, and the exchanges themselves."""
