"""What differs between two recordings of one program: the names that it was given, the cluster, the time, the order in
which its connections are opened, and batches that the broker refused at first. Each is an edit of a recording."""

import copy
import random
from collections.abc import Callable
from typing import Any

from dissector.analysis.diff.side_profile import SideProfile
from tests.analysis.diff.editing import Lines, of, side

KINDS = ("topic", "group", "transaction", "member", "instance")
"""Kinds of names that differ."""
CONSONANTS = "bdfhjlnprtvxz"
HOUR_NS = 3_600_000_000_000
NOT_LEADER = 6
"""NOT_LEADER_OR_FOLLOWER: a producer sends the batch again."""
FURTHER_ID = 500_000
"""Added to the correlation ids of a connection, it makes further ones."""


def replaced(value: Any, change: Callable[[str], str]) -> Any:
    """A copy of a JSON value with all its texts changed."""
    if isinstance(value, dict):
        return {key: replaced(each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [replaced(each, change) for each in value]
    return change(value) if isinstance(value, str) else value


def renamed(names: dict[str, str]) -> Callable[[Lines], Lines]:
    """Rename topics and groups, of the same size: their names are in texts, and in bytes that are not decoded."""
    pairs = [*names.items(), *((old.encode().hex(), new.encode().hex()) for old, new in names.items())]

    def change(text: str) -> str:
        for old, new in pairs:
            text = text.replace(old, new)
        return text

    return lambda lines: replaced(lines, change)


def with_topics(names: list[str]) -> Callable[[Lines], Lines]:
    """Add topics to all lists that brokers send unasked, in front."""

    def add(lines: Lines) -> Lines:
        for line in of(lines, "Metadata"):
            topics = line["response"]["body"]["topics"] if line["response"] else []
            for n, name in enumerate(names if topics else ()):
                more = copy.deepcopy(topics[-1])
                more["name"] = name
                if "topic_id" in more:
                    more["topic_id"] = f"{n:022}"
                more["partitions"] = [
                    first | {"partition_index": number}
                    for first in more["partitions"][:1]
                    for number in range(1 + n % 3)
                ]
                topics.insert(0, more)
        return lines

    return add


def shifted(lines: Lines) -> None:
    """Add one to the number of each partition."""
    for line in lines:
        for part in ("request", "response"):
            _shift((line.get(part) or {}).get("body", {}))


def _shift(value: Any) -> None:
    if isinstance(value, list):
        for each in value:
            _shift(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            is_partition = name == "index" and bool({"records", "base_offset"} & set(value))
            if is_partition or name in ("partition", "partition_index"):
                value[name] = each + 1
            elif name == "partition_indexes":
                value[name] = [number + 1 for number in each]
            else:
                _shift(each)


def other_names(path: str) -> dict[str, str]:
    """Return other names of the same size for all of a recording, longer ones first."""
    chance = random.Random(path)
    own = [name for kind in KINDS for name in SideProfile(side(path), {}, {}).names.get(kind, {}) if name[:2] != "__"]
    return {
        name: "".join(chance.choice(CONSONANTS) if each.isalpha() else each for each in name)
        for name in sorted(own, key=len, reverse=True)
    }


def later(lines: Lines) -> None:
    """Move all by an hour."""
    for message in (line[part] for line in lines for part in ("request", "response") if line[part]):
        message["time_ns"] += HOUR_NS


def reordered(lines: Lines) -> None:
    """Number the connections in the opposite order."""
    connections = list(dict.fromkeys(line["connection"] for line in lines))
    other = dict(zip(connections, reversed(connections), strict=True))
    for line in lines:
        line["connection"] = other[line["connection"]]


def refused_first(times: int) -> Callable[[Lines], Lines]:
    """Let the broker refuse the first Produce requests, which are sent again."""

    def edit(lines: Lines) -> Lines:
        answered = [line for line in of(lines, "Produce") if line["response"]][:times]
        refused = {line["number"]: _refused(line) for line in answered}
        return [each for line in lines for each in (refused.get(line["number"]), line) if each is not None]

    return edit


def _refused(line: dict[str, Any]) -> dict[str, Any]:
    before = copy.deepcopy(line)
    before["correlation_id"] += FURTHER_ID
    for part in ("request", "response"):
        before[part]["header"]["correlation_id"] += FURTHER_ID
    for topic in before["response"]["body"]["responses"]:
        for partition in topic["partition_responses"]:
            partition["error_code"] = NOT_LEADER
            partition["base_offset"] = -1
    before["request"]["time_ns"] -= 200_000
    before["response"]["time_ns"] = before["request"]["time_ns"] + 100_000
    return before


def elsewhere(path: str) -> Callable[[Lines], Lines]:
    """All of it: other names, 50 more topics, other partitions, another time, another order, refused batches."""
    names = renamed(other_names(path))

    def edit(lines: Lines) -> Lines:
        shifted(lines)
        later(lines)
        reordered(lines)
        more = with_topics([f"somebodys-{n}" for n in range(50)])(lines)
        return names(refused_first(2)(more))

    return edit
