"""Keys of JSON with times, where formats or copies differ in them: not all have nanoseconds, and a capture that is made
of messages sends each of them at once."""

TRANSFERS = ("request_transfer_ns", "wait_ns", "response_transfer_ns")
DURATIONS = ("latency_ns", *TRANSFERS)
