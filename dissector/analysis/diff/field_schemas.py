"""What the schemas say of a field at a path: which versions have it, and whether a message has any."""

from functools import lru_cache
from typing import Final

from dissector.analysis.diff.message_leaves import LeafPath
from dissector.analysis.diff.moved_fields import other_paths
from dissector.protocol.schema.loader import message
from dissector.protocol.schema.model import Field, Versions

UNTIL: Final = " up to "
"""In a range of versions, before the last one that has a field."""


def all_versions(body: str, path: LeafPath, schema: Field) -> Versions:
    """Return the versions that have the field at a path, there or where others have it: OffsetFetch up to v7 has its
    topics outside `groups`."""
    others = (field_at(body, other) for other in other_paths(body, path))
    ranges = [schema.versions, *(field.versions for field in others if field is not None)]
    return Versions(min(each.low for each in ranges), max(each.high for each in ranges))


def version_range(versions: Versions) -> str:
    """Describe which versions have a field: ``since v13``, ``up to v12``, ``from v3 up to v5``."""
    low, high = versions.low, versions.high
    if versions.contains(32_767):
        return f"since v{low}"
    return f"up to v{high}" if low == 0 else f"from v{low}{UNTIL}v{high}"


def has_no_fields(body: str, versions: frozenset[int]) -> bool:
    """Return whether a message is empty in all of these versions, as an ApiVersions request up to v2 is."""
    try:
        fields = message(body).fields
    except KeyError:
        return False
    return bool(versions) and not any(field.versions.contains(version) for field in fields for version in versions)


@lru_cache(maxsize=8192)
def field_at(body: str, path: LeafPath) -> Field | None:
    """Return the schema's field at a path; None for a path that no schema has."""
    try:
        fields = message(body).fields
    except KeyError:
        return None
    found: Field | None = None
    for step in path:
        if isinstance(step, str):
            found = next((field for field in fields if field.snake_name == step), None)
            if found is None:
                return None
            fields = found.fields
    return found
