"""Sizes of frames, and of what is needed to recognize one, in bytes."""

from typing import Final

PREFIX: Final = 4
"""A frame begins with its size, which does not count these."""
LEAST_FRAME: Final = 8
"""A prefix and a correlation id."""
LEAST_HEAD: Final = 14
"""A frame of which fewer bytes at its beginning are there (or less than all of it) is `UNPARSED`."""
HEAD: Final = 64
"""First bytes of a direction or frame that a `ProtocolDetector` gets."""
ALERT_SIZE: Final = 7
"""A TLS record with an alert that is not encrypted."""
