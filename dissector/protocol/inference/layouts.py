"""Every layout that a response can have: versions of one API that share one stand together.

The bytes can't tell such versions apart, so they are one candidate. Alternative layouts of a version stand by
themselves.
"""

from dataclasses import dataclass
from functools import cache

from dissector.protocol.codec.plan import StructPlan, least_size, plan
from dissector.protocol.schema.headers import response_header_version
from dissector.protocol.schema.loader import alternatives, apis
from dissector.protocol.schema.model import Api


@dataclass(frozen=True, slots=True, eq=False)
class ResponseLayout:
    """How the responses of some versions of an API stand on the wire."""

    api: Api
    versions: tuple[int, ...]
    """Ascending."""
    header_version: int
    plan: StructPlan
    other: int
    """0, or which of the version's alternatives it is."""
    least: int
    """The fewest bytes that a body of it has."""


@cache
def layouts() -> tuple[ResponseLayout, ...]:
    """All of them. The first call reads the tables of all responses."""
    found: list[ResponseLayout] = []
    for api in apis():
        groups: dict[tuple[int, StructPlan, int], list[int]] = {}
        for version in api.versions:
            header = response_header_version(api.key, version)
            for other in range(len(alternatives(api.response, version)) + 1):
                groups.setdefault((header, plan(api.response, version, other), other), []).append(version)
        found += [
            ResponseLayout(api, tuple(v), header, body, other, least_size(body))
            for (header, body, other), v in groups.items()
        ]
    return tuple(found)
