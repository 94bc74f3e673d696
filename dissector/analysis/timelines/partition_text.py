"""Partitions as text: ``orders[0..3] payments[1]``."""

from collections.abc import Iterable, Mapping
from typing import Any

MAX_TOPICS = 4
_NAMES = ("topic", "topic_name", "name", "topic_id")
_PARTITIONS = ("partitions", "partition_indexes", "partition_data")
_INDEXES = ("partition_index", "index", "partition")


def format_partitions(topics: object, names: Mapping[str, str]) -> str:
    """Return the partitions of structures that each have a topic name or id; `names` are those of ids."""
    found = [_topic(each, names) for each in topics if isinstance(each, dict)] if isinstance(topics, list) else []
    more = f" +{len(found) - MAX_TOPICS}" if len(found) > MAX_TOPICS else ""
    return " ".join(found[:MAX_TOPICS]) + more


def _topic(struct: Mapping[str, Any], names: Mapping[str, str]) -> str:
    topic = next((struct[name] for name in _NAMES if isinstance(struct.get(name), str)), "?")
    partitions: list[object] = next((struct[name] for name in _PARTITIONS if isinstance(struct.get(name), list)), [])
    return names.get(topic, topic) + format_ranges(map(_index, partitions))


def _index(partition: object) -> int | None:
    if isinstance(partition, dict):
        return next((partition[name] for name in _INDEXES if isinstance(partition.get(name), int)), None)
    return partition if isinstance(partition, int) else None


def format_ranges(numbers: Iterable[int | None]) -> str:
    """Return numbers in ascending order, consecutive ones as a range: ``[0..3,7]``."""
    runs: list[list[int]] = []
    for number in sorted({each for each in numbers if each is not None}):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    words = [str(low) if low == high else f"{low}..{high}" if high > low + 1 else f"{low},{high}" for low, high in runs]
    return f"[{','.join(words[:8])}{',…' if len(words) > 8 else ''}]"
