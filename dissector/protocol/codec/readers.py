"""The reader of each message: its layout is interpreted at first, and compiled once it was read often.

`reader(name, version)(data, at, end)` returns `(dict, at)`.
"""

from functools import lru_cache
from typing import Final, cast

from dissector.protocol.codec.interpreter import interpreter
from dissector.protocol.codec.plan import TypePlan, plan
from dissector.protocol.codec.reader import Reader, ValueReader, compile_reader

OFTEN: Final = 50
"""Messages of a layout from which on compiling pays: it takes a millisecond, and saves about 20 us a message."""


@lru_cache(maxsize=1024)
def reader(name: str, version: int, other: int = 0) -> Reader:
    """Return the reader of a message by name; `other` is as in `plan`."""
    return cast(Reader, reader_of(plan(name, version, other)))


def reader_of(plan: TypePlan) -> ValueReader:
    """Return a reader of one value of this layout."""
    read, left = interpreter(plan), OFTEN

    def call(data: bytes, at: int, end: int) -> tuple[object, int]:
        nonlocal read, left
        if left:
            left -= 1
            if not left:
                read = compile_reader(plan)
        return read(data, at, end)

    return call
