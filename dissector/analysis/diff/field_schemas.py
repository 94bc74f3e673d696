"""What the schemas say of a field at a path: which versions have it, there or elsewhere, and whether a message has any.

Of the fields that later versions have at another path `MOVED` lists those that only moved. Where one field replaces
another from some version on, their ranges of versions show it.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from dissector.analysis.diff.message_leaves import UNLABELED, ElementLabel, LeafPath
from dissector.protocol.schema.loader import message
from dissector.protocol.schema.model import Field, Versions

_ANY: Final = "*"
_SUBSCRIPTION: Final[LeafPath] = ("protocols", UNLABELED, "metadata")
"""The subscription that a member sends with each assignor is about the member, and mostly the same for all."""
_GROUPS: Final = ((("groups", _ANY), ()), (("groups",), None))
MOVED: Final[dict[str, tuple[tuple[tuple[str, ...], LeafPath | None], ...]]] = {
    "FindCoordinatorRequest": ((("coordinator_keys", _ANY), ("key",)), (("coordinator_keys",), None)),
    "FindCoordinatorResponse": ((("coordinators", _ANY), ()), (("coordinators",), None)),
    "OffsetFetchRequest": _GROUPS,
    "OffsetFetchResponse": _GROUPS,
    "JoinGroupRequest": ((("protocols", _ANY, "metadata"), _SUBSCRIPTION),),
    "LeaveGroupRequest": ((("members", _ANY), ()), (("members",), None)),
}
"""By message: how a path begins, and the beginning of its canonical path; None for fields that have none."""


def canonical_path(message: str, path: LeafPath) -> LeafPath | None:
    """Return the path at which a field is compared; None if it is not compared."""
    for old, new in MOVED.get(message, ()):
        if len(path) >= len(old) and all(map(_matches, path, old)):
            return None if new is None else (*new, *path[len(old) :])
    return path


def other_paths(message: str, path: LeafPath) -> Iterator[LeafPath]:
    """Yield the paths that other versions of a message can have for the field at a path of it."""
    canonical = canonical_path(message, path)
    if canonical is None:
        return
    if canonical != path:
        yield canonical
        return
    for old, new in MOVED.get(message, ()):
        if new is not None and path[: len(new)] == new:
            yield (*(UNLABELED if name == _ANY else name for name in old), *path[len(new) :])


def _matches(step: str | ElementLabel, name: str) -> bool:
    return isinstance(step, ElementLabel) if name == _ANY else step == name


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
