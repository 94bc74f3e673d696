"""What is produced and not compared: the state of workers of Kafka Connect, and partitions of records without keys.

Workers keep configs, offsets and statuses in topics, and MirrorMaker heartbeats and the like. These records have random
keys, times, addresses and states of one run: they are others each time, and how many there are depends on when tasks
begin. Workers call the clients that write them after their group and what they keep.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from dissector.analysis.diff.batching import ProducedBatches, topic_of
from dissector.analysis.diff.compared_values import EntityName
from dissector.analysis.diff.frequency_comparison import CONNECT
from dissector.analysis.diff.kept_numbers import as_column
from dissector.analysis.diff.key_differences import ELEMENTS, KeyDifference
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.message_leaves import ElementLabel
from dissector.analysis.diff.name_matching import MAX_NAMED, NameMatching
from dissector.analysis.diff.side import DiffSide
from dissector.analysis.diff.side_profile import SideProfile
from dissector.capture_session import Capture
from dissector.core.arrays import Int64

KEPT: Final = ("-configs", "-offsets", "-statuses")
"""How the client id of a worker's own producer ends; it begins with the group's name."""
MIRRORS: Final = re.compile(r"connector-producer-Mirror\w+Connector-\d+")
"""Client ids of producers of MirrorMaker's connectors."""
OF_MIRRORS: Final = re.compile(r"(.+\.)?heartbeats|mm2-offset-syncs\..+\.internal|.+\.checkpoints\.internal")
"""Topics that MirrorMaker writes besides those that it mirrors; it mirrors heartbeats, too."""


class UncomparedRecords:
    """What of both sides' records is not compared."""

    def __init__(self, sides: Sequence[SideProfile], names: NameMatching) -> None:
        self._sides = sides
        self._of_workers = [_worker_topics(side) for side in sides]
        workers, unkeyed = (
            [{names.value(n, EntityName("topic", topic)) for topic in of_side} for n, of_side in enumerate(topics)]
            for topics in (self._of_workers, [_unkeyed(side.batches) for side in sides])
        )
        self._labels = workers[0] | workers[1]
        self._unkeyed = unkeyed[0] & unkeyed[1]

    @property
    def batches(self) -> tuple[ProducedBatches, ProducedBatches]:
        """The batches of both sides, without the sums of what is not compared."""
        a, b = (side.batches.without(of) for side, of in zip(self._sides, self._of_workers, strict=True))
        return a, b

    def has(self, key: MatchingKey, found: KeyDifference) -> bool:
        """Return whether a difference is about what is not compared: about what is in a topic of workers, or about the
        partitions that records without keys go to."""
        if key.api != "Produce":
            return False
        labels = {step.value for step in found.path[:-1] if isinstance(step, ElementLabel)}
        return bool(labels & self._labels) or (found.explanation == ELEMENTS and bool(labels & self._unkeyed))

    def notes(self) -> Iterator[str]:
        """Say whose records are not compared."""
        topics = sorted(set().union(*self._of_workers))
        if topics:
            names = f"{', '.join(topics[:MAX_NAMED])}{', …' if len(topics) > MAX_NAMED else ''}"
            yield f"the records in which workers of Kafka Connect keep their state, in {names}"


def _unkeyed(batches: ProducedBatches) -> set[str]:
    """Return the topics whose records have no keys."""
    return batches.topics.keys() - {topic for topic, _ in batches.keyed}


def _worker_topics(side: SideProfile) -> set[str]:
    """Return the topics, of those that a side produced to, in which workers keep their state."""
    groups = tuple(f"{group}-" for group in _groups(side.keys))
    rows = [as_column(profile.rows) for key, profile in side.keys.items() if key.api == "Produce"]
    if not groups or not rows:  # nearly always
        return set()
    found = set[str]()
    for name, topics in side.side.ask(partial(_topics_by_client, rows=np.sort(np.concatenate(rows)))).items():
        if name.startswith(groups) and name.endswith(KEPT):
            found.update(topics)
        if MIRRORS.fullmatch(name):
            found.update(topic for topic in side.batches.topics if OF_MIRRORS.fullmatch(topic))
    return found


def _topics_by_client(side: DiffSide, rows: Int64) -> dict[str, list[str]]:
    """Return the topics of the first of these Produce requests of each client id."""
    index = side.capture.index
    numbers, first = np.unique(index.numbers(rows).client_id, return_index=True)
    clients = zip(numbers.tolist(), rows[first].tolist(), strict=True)
    return {index.client_id(number) or "": [*_topics(side.capture, row)] for number, row in clients}


def _groups(keys: Mapping[MatchingKey, KeyProfile]) -> Iterator[str]:
    """Yield the groups of workers."""
    for key, profile in keys.items():
        if key.api == "JoinGroup" and CONNECT in profile.fields.get(("request", ("protocol_type",)), ()):
            yield from (each.text for each in key.subject if isinstance(each, EntityName))


def _topics(capture: Capture, row: int) -> Iterator[str]:
    """Yield the topics of a Produce request."""
    request = capture.exchange_for_now(row).request
    topics = request.body.get("topic_data") if request is not None else None
    for topic in topics if isinstance(topics, list) else ():
        assert request is not None
        yield topic_of(topic, request)
