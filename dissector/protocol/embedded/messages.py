"""One format found inside bytes: what stands before it, and the messages that it is made of."""

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
"""The value of the nearest enclosing field of that name; None where there is none."""
Values = dict[str, object]
DECODED: Final = "decoded"


@dataclass(frozen=True, slots=True)
class EmbeddedMessage:
    """A message inside: `name` is what it is called there (``decoded``, or ``header`` and ``body``)."""

    name: str
    message: str
    version: int


@dataclass(frozen=True, slots=True)
class EmbeddedMessages:
    """`prefix` are numbers that stand before the pieces, with their types: ``("version", INT16)``."""

    prefix: tuple[tuple[str, Primitive], ...]
    messages: tuple[EmbeddedMessage, ...]
    whole: bool = True
    """Whether it must end where the bytes end: not so for versions newer than known."""

    def read(self, raw: bytes) -> Values | None:
        """Its values, numbers of the prefix first; None where the bytes are no such thing."""
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
    """The newest version that is known of a message, imported or made by hand."""
    return (extra_schemas().get(message) or loader.message(message)).valid_versions.high


@lru_cache(maxsize=256)
def embedded_plan(message: str, version: int) -> StructPlan:
    """The layout of a each."""
    return plan_of(extra_schemas()[message], version) if message in extra_schemas() else plan(message, version)


@lru_cache(maxsize=256)
def embedded_reader(message: str, version: int) -> Reader:
    """The compiled reader of a each."""
    return compile_reader(embedded_plan(message, version))
