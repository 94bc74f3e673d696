"""Contents of bytes that have a schema: a prefix of primitives, then messages."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, cast

from dissector.core.json_text import finite
from dissector.protocol.codec.plan import StructPlan, holds, plan, plan_of
from dissector.protocol.codec.reader import DECODE_ERRORS, Reader, reader_of
from dissector.protocol.embedded.extra_schemas import extra_schemas
from dissector.protocol.primitives import Primitive
from dissector.protocol.schema import loader

Scope = Callable[[str], object]
"""Returns the value of the nearest enclosing field of a name, or None."""
Values = dict[str, object]
DECODED: Final = "decoded"
MISSING: Final = "missing_fields"
"""The key of the names of fields that are not there as the bytes end early."""


@dataclass(frozen=True, slots=True)
class EmbeddedMessage:
    """One message inside bytes. `name` is its field's (``decoded``, or ``header`` and ``body``)."""

    name: str
    message: str
    version: int
    count: int | None = None
    """How many of its fields are there, if the bytes end before the last; None for all."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The fields that should follow where the bytes end."""
        if self.count is None:
            return ()
        fields = embedded_plan(self.message, self.version).fields
        return tuple(field.name for field in fields[self.count :]) or ("(tagged fields)",)


@dataclass(frozen=True, slots=True)
class EmbeddedMessages:
    """The content of a bytes field. `prefix` are the numbers before the messages: ``("version", INT16)``."""

    prefix: tuple[tuple[str, Primitive], ...]
    messages: tuple[EmbeddedMessage, ...]
    whole: bool = True
    """Whether it must end where the bytes end; false for versions newer than the known ones."""
    may_end_early: bool = False
    """Whether the last fields may be missing: some clients write an older layout than their version has."""
    least: int = 1
    """The fewest fields that must be there then."""

    def read(self, raw: bytes) -> Values | None:
        """Return the values, those of the prefix first, as JSON has them; None if the bytes are something else."""
        values: Values = {}
        at = 0
        try:
            for name, kind in self.prefix:
                values[name], at = kind.read(raw, at)
            for each in self.messages:
                read, at = embedded_reader(each.message, each.version, each.count)(raw, at, len(raw))
                read = finite(read) if _has_floats(each.message, each.version) else read
                values |= read if each.name == DECODED else {each.name: read}
                if each.count is not None:
                    values[MISSING] = list(each.missing)
        except DECODE_ERRORS:
            return None
        return values if at == len(raw) or not self.whole else None

    def ending_early(self, raw: bytes) -> "EmbeddedMessages | None":
        """Return the content without the last fields, if the bytes are that."""
        if not self.may_end_early:
            return None
        [message] = self.messages
        for count in range(len(embedded_plan(message.message, message.version).fields), self.least - 1, -1):
            found = replace(self, messages=(replace(message, count=count),), whole=True)
            if found.read(raw) is not None:
                return found
        return None


def newest_version(message: str) -> int:
    """Return the newest known version of a message, of the tables or of `extra_schemas`."""
    return (extra_schemas().get(message) or loader.message(message)).valid_versions.high


@lru_cache(maxsize=256)
def embedded_plan(message: str, version: int, count: int | None = None) -> StructPlan:
    """Return the layout of an embedded message, or of its first fields alone."""
    whole = plan_of(extra_schemas()[message], version) if message in extra_schemas() else plan(message, version)
    return whole if count is None else whole._replace(fields=whole.fields[:count], flexible=False)


@lru_cache(maxsize=256)
def _has_floats(message: str, version: int) -> bool:
    return holds(embedded_plan(message, version), "float64")


@lru_cache(maxsize=256)
def embedded_reader(message: str, version: int, count: int | None = None) -> Reader:
    """Return the reader of an embedded message, or of its first fields."""
    return cast(Reader, reader_of(embedded_plan(message, version, count)))
