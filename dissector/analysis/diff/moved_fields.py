"""Fields that a later version has at another place: so that versions from before and after compare.

The places come from Apache's message schemas; only moves are here. A field that another replaced, from the version on
in which the other ends, is told from the schema's ranges alone (`fields`).
"""

from typing import Final

from dissector.analysis.diff.message_leaves import UNLABELLED, ElementLabel, LeafPath

_ANY: Final = "*"
_SUBSCRIPTION: Final[LeafPath] = ("protocols", UNLABELLED, "metadata")
"""What a member says with each assignor that it offers is about the member, and most say the same with each."""
_GROUPS: Final = ((("groups", _ANY), ()), (("groups",), None))
MOVED: Final[dict[str, tuple[tuple[tuple[str, ...], LeafPath | None], ...]]] = {
    "FindCoordinatorRequest": ((("coordinator_keys", _ANY), ("key",)), (("coordinator_keys",), None)),
    "FindCoordinatorResponse": ((("coordinators", _ANY), ()), (("coordinators",), None)),
    "OffsetFetchRequest": _GROUPS,
    "OffsetFetchResponse": _GROUPS,
    "JoinGroupRequest": ((("protocols", _ANY, "metadata"), _SUBSCRIPTION),),
    "LeaveGroupRequest": ((("members", _ANY), ()), (("members",), None)),
}
"""By message: what a path begins with, and what that is to the comparison; None for what has no other place."""


def canonical_path(message: str, path: LeafPath) -> LeafPath | None:
    """Where the comparison has a field; None where it has none."""
    for old, new in MOVED.get(message, ()):
        if len(path) >= len(old) and all(map(_fits, path, old)):
            return None if new is None else (*new, *path[len(old) :])
    return path


def _fits(step: str | ElementLabel, name: str) -> bool:
    return isinstance(step, ElementLabel) if name == _ANY else step == name
