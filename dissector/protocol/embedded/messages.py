"""Contents of bytes that have a schema: a prefix of primitives, then messages."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dissector.protocol.codec.plan import StructPlan, plan, plan_of
from dissector.protocol.codec.reader import DECODE_ERRORS, Reader, compile_reader
from dissector.protocol.embedded.extra_schemas import extra_schemas
from dissector.protocol.primitives import Primitive
from dissector.protocol.schema import loader

Scope = Callable[[str], object]
"""Returns the value of the nearest enclosing field of a name, or None."""
Values = dict[str, object]
DECODED: Final = "decoded"


@dataclass(frozen=True, slots=True)
class EmbeddedMessage:
    """One message inside bytes. `name` is its field's (``decoded``, or ``header`` and ``body``)."""

    name: str
    message: str
    version: int


@dataclass(frozen=True, slots=True)
class EmbeddedMessages:
    """The content of a bytes field. `prefix` are the numbers before the messages: ``("version", INT16)``."""

    prefix: tuple[tuple[str, Primitive], ...]
    messages: tuple[EmbeddedMessage, ...]
    whole: bool = True
    """Whether it must end where the bytes end; false for versions newer than the known ones."""

    def read(self, raw: bytes) -> Values | None:
        """Return the values, those of the prefix first; None if the bytes are something else."""
        values: Values = {}
        at = 0
        try:
            for name, kind in self.prefix:
                values[name], at = kind.read(raw, at)
            for each in self.messages:
                read, at = embedded_reader(each.message, each.version)(raw, at, len(raw))
                values |= read if each.name == DECODED else {each.name: read}
        except DECODE_ERRORS:
            return None
        return values if at == len(raw) or not self.whole else None


def newest_version(message: str) -> int:
    """Return the newest known version of a message, of the tables or of `extra_schemas`."""
    return (extra_schemas().get(message) or loader.message(message)).valid_versions.high


@lru_cache(maxsize=256)
def embedded_plan(message: str, version: int) -> StructPlan:
    """Return the layout of an embedded message."""
    return plan_of(extra_schemas()[message], version) if message in extra_schemas() else plan(message, version)


@lru_cache(maxsize=256)
def embedded_reader(message: str, version: int) -> Reader:
    """Return the compiled reader of an embedded message."""
    return compile_reader(embedded_plan(message, version))
