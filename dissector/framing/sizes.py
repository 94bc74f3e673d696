"""How many bytes it takes: of a frame, and to tell one."""

from typing import Final

PREFIX: Final = 4
"""A frame begins with its size, which does not count these."""
LEAST_FRAME: Final = 8
"""A prefix and a correlation id."""
LEAST_HEAD: Final = 14
"""Without so many bytes at its beginning (or all of it) nothing can be told of a frame: it is `UNPARSED`."""
HEAD: Final = 64
"""Bytes that a recogniser is shown."""
