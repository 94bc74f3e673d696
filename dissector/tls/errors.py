"""What can be wrong with a record, or with a key log."""


class BadRecordError(Exception):
    """A record that a key does not open: a wrong tag, impossible padding, too short."""


class KeyLogError(Exception):
    """A key log that can't be read. Its text is one plain line."""
