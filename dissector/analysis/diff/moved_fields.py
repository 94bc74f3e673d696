"""Fields that later versions have at another path, so that older and newer versions can be compared.

The paths come from Apache's message schemas; only moves are listed. Where one field replaces another from some version
on, the version ranges in the schema show it (`field_schemas`).
"""

from collections.abc import Iterator
from typing import Final

from dissector.analysis.diff.message_leaves import UNLABELED, ElementLabel, LeafPath

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
