"""All layouts that a response can have. Versions of an API with the same layout are one candidate.

The bytes don't distinguish such versions. Alternative layouts of a version are separate candidates.
"""

from dataclasses import dataclass
from functools import cache

from dissector.protocol.codec.plan import StructPlan, least_size, plan
from dissector.protocol.codec.program import Program
from dissector.protocol.inference.beginnings import Beginning, beginning_of
from dissector.protocol.schema.headers import response_header_version
from dissector.protocol.schema.loader import alternatives, apis
from dissector.protocol.schema.model import Api


@dataclass(frozen=True, slots=True, eq=False)
class ResponseLayout:
    """The layout of responses of some versions of an API."""

    api: Api
    versions: tuple[int, ...]
    """Ascending."""
    header_version: int
    plan: StructPlan
    other: int
    """0, or the number of the version's alternative layout."""
    least: int
    """Bytes of the smallest body."""
    beginning: Beginning = ()
    """The numbers that the body begins with."""
    number: int = 0
    """Its place in `layouts`."""


@cache
def layouts() -> tuple[ResponseLayout, ...]:
    """Return all layouts. The first call reads the tables of all responses."""
    found: list[ResponseLayout] = []
    for api in apis():
        groups: dict[tuple[int, StructPlan, int], list[int]] = {}
        for version in api.versions:
            header = response_header_version(api.key, version)
            for other in range(len(alternatives(api.response, version)) + 1):
                groups.setdefault((header, plan(api.response, version, other), other), []).append(version)
        found += [
            ResponseLayout(api, tuple(v), header, body, other, least_size(body), beginning_of(body), number)
            for number, ((header, body, other), v) in enumerate(groups.items(), len(found))
        ]
    return tuple(found)


def layout_program(layout: ResponseLayout) -> Program:
    """Return the program of frames with this layout."""
    return Program((("header", plan("ResponseHeader", layout.header_version)), ("body", layout.plan)))
