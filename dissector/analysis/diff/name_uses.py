"""What a side uses each name for: the messages that have it. A topic may be produced to, or only listed.

Names of the two sides that differ are matched by their uses (`name_matching`). A topic that a client sees in responses
alone is the cluster's, and tells nothing of the client.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from enum import IntEnum
from typing import Final, NamedTuple

from dissector.analysis.diff.compared_values import ComparedValue, EntityName
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.message_leaves import ElementLabel, LeafPath

SEEN_KINDS: Final = frozenset(("topic", "group", "transaction"))
"""Kinds of names that responses list although no request asks for them."""
PARTITION_FIELDS: Final = frozenset(("partition", "partition_index", "partition_indexes", "partitions", "partition_id"))
PARTITION_ARRAYS: Final = frozenset(
    ("partitions", "partition_data", "partition_responses", "partition_results", "partition_result",
     "results_by_partition", "task_offsets", "task_end_offsets")
)  # fmt: skip


QUERIES: Final = frozenset(
    ("Metadata", "DescribeTopicPartitions", "DescribeConfigs", "DescribeGroups", "ConsumerGroupDescribe",
     "ShareGroupDescribe", "StreamsGroupDescribe", "DescribeTransactions", "DescribeProducers", "DescribeLogDirs",
     "ListOffsets", "OffsetFetch", "OffsetForLeaderEpoch", "FindCoordinator", "DescribeShareGroupOffsets")
)  # fmt: skip
"""APIs with which tools query all that they have seen listed."""


class Tier(IntEnum):
    """How much a side has to do with a name."""

    SEEN = 0
    """Responses alone have it."""
    QUERIED = 1
    """Requests that only query have it."""
    USED = 2
    """A program works with it: it produces, fetches, commits, joins."""


class Use(NamedTuple):
    """A message that has a name."""

    api: str
    part: str
    """``request`` or ``response``."""

    @property
    def is_work(self) -> bool:
        """Whether it is a request that works with the name."""
        return self.part == "request" and self.api not in QUERIES


class NameUses:
    """The uses of a side's names, and the partitions of its topics."""

    def __init__(self, keys: Mapping[MatchingKey, KeyProfile]) -> None:
        self._uses: dict[EntityName, dict[Use, int]] = defaultdict(dict)
        """With the first row that has each use."""
        self._company: dict[EntityName, set[EntityName]] = defaultdict(set)
        for key, profile in keys.items():
            subjects = [each for each in key.subject if isinstance(each, EntityName)]
            for subject in subjects:
                self._add(subject, Use(key.api, "request"), profile.rows[0])
            for (part, path), values in profile.fields.items():
                for name in _names(path, values):
                    self._add(name, Use(key.api, part), profile.first_rows[part, path])
                    self._company[name].update(subjects)
        self.keys = keys

    def _add(self, name: EntityName, use: Use, row: int) -> None:
        of_name = self._uses[name]
        of_name[use] = min(of_name.get(use, row), row)

    def __iter__(self) -> Iterator[EntityName]:
        return iter(self._uses)

    def of(self, name: EntityName) -> Set[Use]:
        """Return the messages that have a name."""
        return self._uses.get(name, {}).keys()

    def first_row(self, name: EntityName, use: Use) -> int:
        """Return the first row in which a side uses a name so."""
        return self._uses[name][use]

    def company(self, name: EntityName) -> Set[EntityName]:
        """Return what the requests are for that have a name, or whose responses have it: groups and transactions."""
        return self._company.get(name, frozenset())

    def tier(self, name: EntityName) -> Tier:
        """Return how much the side has to do with a name."""
        if any(use.is_work for use in self.of(name)):
            return Tier.USED
        return Tier.QUERIED if any(use.part == "request" for use in self.of(name)) else Tier.SEEN

    def partitions(self, topics: Set[EntityName]) -> frozenset[tuple[int, bool]]:
        """Return the partitions that these topics have according to Metadata, and whether a topic had them from the
        first time on that it is described; without Metadata, all that messages name."""
        described: dict[tuple[EntityName, int], int] = {}
        named: set[int] = set()
        for key, profile in self.keys.items():
            is_description = key.api == "Metadata"
            for (part, path), row in profile.first_rows.items():
                of_path = _topics(path)
                if of_path and not of_path & topics:
                    continue
                found = set(_partitions(path))
                named |= found
                if is_description and part == "response":
                    for each in ((topic, number) for topic in of_path for number in found):
                        described[each] = min(described.get(each, row), row)
        if not described:
            return frozenset((number, True) for number in named)
        first: dict[EntityName, int] = {}
        for (topic, _), row in described.items():
            first[topic] = min(first.get(topic, row), row)
        return frozenset((number, row == first[topic]) for (topic, number), row in described.items())


def _names(path: LeafPath, values: Mapping[ComparedValue, int]) -> Iterator[EntityName]:
    yield from (step.value for step in path if isinstance(step, ElementLabel) and isinstance(step.value, EntityName))
    yield from (value for value in values if isinstance(value, EntityName))


def _topics(path: LeafPath) -> Set[EntityName]:
    labels = (step.value for step in path if isinstance(step, ElementLabel))
    return {label for label in labels if isinstance(label, EntityName) and label.kind == "topic"}


def _partitions(path: LeafPath) -> Iterator[int]:
    for n, step in enumerate(path):
        if is_partition_label(path, n) and isinstance(step, ElementLabel) and isinstance(step.value, int):
            yield step.value


def is_partition_label(path: LeafPath, at: int) -> bool:
    """Return whether a step of a path is the label of a partition: a number of an array of partitions."""
    step = path[at]
    is_number = isinstance(step, ElementLabel) and isinstance(step.value, int)
    return is_number and at > 0 and path[at - 1] in PARTITION_ARRAYS


def holds_partitions(path: LeafPath) -> bool:
    """Return whether a field holds the numbers of partitions."""
    names = [step for step in path if isinstance(step, str)]
    if not names:
        return False
    return names[-1] in PARTITION_FIELDS or (
        names[-1] == "index" and names[-2:-1] != [] and names[-2] in PARTITION_ARRAYS
    )
