"""`make vectors`: messages that Apache's own codec wrote and read, for the tests to hold ours against."""
