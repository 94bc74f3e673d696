"""Statistics of a capture: counts, bytes, latencies, errors and versions of exchanges, by what they have in common."""
