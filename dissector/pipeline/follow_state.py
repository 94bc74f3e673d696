"""What a follower keeps between micro-batches, and across restarts: its state, and of each partition a carry-over.

Files of the follower's folder, in the format of `state_file`: `state`, and for each partition one in
`carry-over-BATCH/`. A micro-batch has ended when `state` names it; only then its carry-overs are read.

Invariant: a state that is damaged, incomplete or of another version raises `StorageError` before anything is read, with
what to do.
"""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, NamedTuple

from dissector.capture_session.checkpoint import load
from dissector.core.object_graph import GraphError, Nodes, from_nodes, to_nodes
from dissector.findings.framework.aggregation import IncrementalAggregation
from dissector.pipeline.origins import Origin
from dissector.pipeline.state_file import StateFileError, StateVersionError, read_state_file, write_state_file
from dissector.tables.storage import StorageError

FOLLOWER: Final = "_follow"
"""The follower's folder beside the tables: state from one micro-batch to the next."""
WORK: Final = f"{FOLLOWER}/work"
"""Folder of what a micro-batch writes for itself."""
STATE: Final = "state"
MOST_PARTS: Final = 1 << 14
"""Partitions of a state that is read."""
CARRY_OVER: Final = "carry-over-"
"""Prefix of the folders of carry-overs, before the number of the micro-batch."""


@dataclass
class FollowState:
    """State of the follower after the last committed micro-batch."""

    parts: int
    epoch: int
    """Of all captures."""
    batch: int = -1
    packets: int = 0
    latest_ns: int = 0
    origins: list[Origin] = field(default_factory=list)
    aggregation: IncrementalAggregation = field(default_factory=IncrementalAggregation)
    """State of the cross-connection findings."""
    begins: dict[str, int] = field(default_factory=dict)
    """Time of the first packet of each file that was read, by path."""
    digests: frozenset[str] = frozenset()
    """Of the files that were read, and of their contents."""
    has_carry_overs: bool = False
    """Whether this micro-batch wrote carry-overs: the last one of a ring does not."""


class CarryOver(NamedTuple):
    """State of a partition between two micro-batches."""

    capture: Nodes | None = None
    """The checkpoint of its capture; None if there is nothing yet."""
    connections: frozenset[int] = frozenset()
    """Connections that have rows of exchanges, and no row of `connections` yet."""


def write_state(folder: Path, state: FollowState) -> None:
    """Write the follower's state, completely or not at all."""
    write_state_file(folder / STATE, {"state": to_nodes(state)})


def read_state(folder: Path) -> FollowState | None:
    """Return the follower's state; None if there is none. Raises `StorageError` for one of another version, and if it,
    or a carry-over that it needs, is damaged."""
    path = folder / STATE
    if not path.exists():
        return None
    remedy = f"remove {folder} to begin again: captures that are in the tables are not read again"
    try:
        state = from_nodes(read_state_file(path)["state"])
        if not isinstance(state, FollowState) or not _is_whole(state):
            raise GraphError("no state")
        if state.has_carry_overs:
            for part in range(state.parts):
                path = carry_over_folder(folder, state.batch) / str(part)
                _check_carry_over(path)
    except StateVersionError as error:
        raise StorageError(f"{path}: {error}: end it by that with --follow --idle 1, or {remedy}") from error
    except (StateFileError, GraphError, KeyError) as error:
        raise StorageError(f"{path}: damaged: {remedy}") from error
    except FileNotFoundError as error:
        raise StorageError(f"{path}: missing: {remedy}") from error
    return state


def _is_whole(state: FollowState) -> bool:
    """Whether a state has all attributes, and in them what they are for: some of them name files."""
    found = vars(state)
    return (
        found.keys() == {each.name for each in fields(FollowState)}
        and all(type(found[name]) is int for name in ("parts", "epoch", "batch", "packets", "latest_ns"))
        and 0 < state.parts <= MOST_PARTS and state.batch >= -1 and state.packets >= 0
        and type(state.has_carry_overs) is bool and type(state.aggregation) is IncrementalAggregation
        and type(state.origins) is list and all(type(each) is Origin for each in state.origins)
        and _has(state.begins, dict, str)
        and _has(state.digests, frozenset, str)
        and all(type(each) is int for each in state.begins.values())
    )  # fmt: skip


def _has(found: Any, kind: type, element: type) -> bool:
    """Whether it is a collection of a kind, with such elements or keys."""
    is_one = type(found) is kind
    return is_one and all(type(each) is element for each in found)


def _check_carry_over(path: Path) -> None:
    """Raise what `read_state` raises for a carry-over that no task could continue from."""
    graphs = read_state_file(path)
    if not _has(from_nodes(graphs["connections"]), frozenset, int):
        raise GraphError("no connections")
    if "capture" in graphs:
        load(graphs["capture"])


def carry_over_folder(folder: Path, batch: int) -> Path:
    """Return the folder of the carry-overs after a micro-batch."""
    return folder / f"{CARRY_OVER}{batch}"


def write_carry_over(folder: Path, part: int, carry_over: CarryOver) -> None:
    """Write the carry-over of a partition. The file is complete, however many attempts of the task write it."""
    graphs = {"connections": to_nodes(carry_over.connections)}
    if carry_over.capture is not None:
        graphs["capture"] = carry_over.capture
    write_state_file(folder / str(part), graphs)


def read_carry_over(folder: Path, part: int) -> CarryOver:
    """Return the carry-over of a partition: an empty one before the first micro-batch."""
    path = folder / str(part)
    if not path.exists():
        return CarryOver()
    graphs = read_state_file(path)
    return CarryOver(graphs.get("capture"), from_nodes(graphs["connections"]))
