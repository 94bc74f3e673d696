"""Writes values in the form of our JSON (INTERFACE.md): bytes in hex, `records` as objects, NaN as a string.

Fields that `show` adds (``metadata_decoded``) are ignored.
"""

from collections.abc import Mapping
from typing import Final

from dissector.protocol.codec.plan import ScalarPlan, TypePlan, VariablePlan
from dissector.protocol.codec.writer import Writer
from dissector.protocol.wire.writing import EncodeError

DECODED: Final = "_decoded"
_FLOATS: Final = ("nan", "inf", "-inf")


class JsonWriter(Writer):
    """Writer of values that were read from JSON."""

    def value(self, plan: TypePlan, value: object) -> bytes:
        if isinstance(plan, ScalarPlan) and plan.type == "float64" and value in _FLOATS:
            return super().value(plan, float(str(value)))
        return super().value(plan, value)

    def is_derived(self, name: str, values: Mapping[str, object]) -> bool:
        return name.endswith(DECODED) and name.removesuffix(DECODED) in values

    def bytes_of(self, plan: VariablePlan, value: object) -> bytes:
        if isinstance(value, str):
            try:
                return bytes.fromhex(value)
            except ValueError:
                raise EncodeError(f"{value!r:.40} is not hex") from None
        return super().bytes_of(plan, value)
