"""How many bytes each field of a message takes, of messages as `to_json` has them: without making their bytes.

Invariant: for a frame in canonical encoding, the sizes are those of its tree
(`analysis.stats.field_bytes.paths_of`), in its order; their sum is the frame's size, but for the size prefix.
"""

from collections.abc import Callable, Mapping
from functools import partial

from dissector.protocol.codec.plan import FieldPlan, StructPlan, VariablePlan, plan
from dissector.protocol.frame import JsonWriter
from dissector.protocol.wire import EncodeError, uvarint_bytes


def field_sizes(header: tuple[str, int, object], body: tuple[str, int, object]) -> dict[str, int]:
    """Return the bytes by path of a header and a body, each given with its name and version. Raises `EncodeError`."""
    writer = _SizeWriter()
    for part, (name, version, values) in (("header", header), ("body", body)):
        writer.note(part, partial(writer.struct, plan(name, version), values))
    return {path: size for path, size in writer.sizes.items() if size}


class _SizeWriter(JsonWriter):
    """Notes the size of each field that it writes, without those of the fields in it."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self._path = ""
        self._inner = 0
        """Bytes of the fields in the one that is written."""

    def note(self, name: str, write: Callable[[], bytes], beside: Callable[[bytes], int] = lambda _: 0) -> bytes:
        """Note what is written below a name, and the bytes that the encoding puts beside it."""
        above, before = self._path, self._inner
        self._path, self._inner = f"{above}.{name}" if above else name, 0
        raw = write()
        size = len(raw) + beside(raw)
        self.sizes[self._path] = self.sizes.get(self._path, 0) + size - self._inner
        self._path, self._inner = above, before + size
        return raw

    def _field(self, field: FieldPlan, values: Mapping[str, object]) -> bytes:
        written = super()._field
        if not isinstance(field.type, StructPlan) or field.type.nullable:
            self._begin(field.name)
        return self.note(field.name, lambda: written(field, values))

    def _tagged(self, field: FieldPlan, value: object) -> bytes:
        self._begin(field.name)
        written, tag = super()._tagged, len(uvarint_bytes(field.tag or 0))
        return self.note(field.name, lambda: written(field, value), lambda raw: tag + len(uvarint_bytes(len(raw))))

    def _tagged_fields(self, plan: StructPlan, values: Mapping[str, object]) -> bytes:
        self.sizes.setdefault(self._path, 0)  # for their count
        return super()._tagged_fields(plan, values)

    def _begin(self, name: str) -> None:
        """Give a field its place, in front of the fields in it."""
        self.sizes.setdefault(f"{self._path}.{name}", 0)

    def bytes_of(self, plan: VariablePlan, value: object) -> bytes:
        if isinstance(value, str):
            if len(value) % 2:
                raise EncodeError("this is not hex")
            return bytes(len(value) // 2)
        return super().bytes_of(plan, value)
