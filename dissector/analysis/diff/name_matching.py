"""Match names that differ between the sides: by what each side uses them for, and in the order of their appearance.

Names that programs choose are matched tier by tier (`Tier`): first those that both sides work with, then those that one
of them only queries, then those that responses list. In each tier equal names match, then those with the same uses:
a topic of the cluster that both sides have seen does not keep a side's own topic from its counterpart. Of names that
work alike, the words in them decide (`name_words`), never against what is done with them. Names that a run generates
(member ids, producer ids, uuids) are matched by their groups and transactions, use and order: equal ones are a
coincidence; the first pair of a kind is #1. More of them on one side are told from the matched ones only if they are
used otherwise: the fourth idempotent producer is one more of the first. A topic or group that a side sees in responses
alone, and that matches none that the other side asks for, is left out of the comparison.

If the topics of both sides have other partitions, all partitions are compared together.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import islice
from operator import attrgetter
from typing import Final, NamedTuple

from dissector.analysis.diff.compared_values import COUNTED_KINDS, ComparedValue, EntityName, Placeholder
from dissector.analysis.diff.matching_keys import MatchingKey
from dissector.analysis.diff.message_leaves import UNLABELED, ElementLabel, LeafPath
from dissector.analysis.diff.name_uses import SEEN_KINDS, NameUses, Tier, Use, holds_partitions, is_partition_label
from dissector.analysis.diff.name_words import NameWords
from dissector.core.text import counted

GENERATED_KINDS: Final = frozenset(
    ("member", "producer", "uuid", "fetch session", "port", "cluster", "subscription", "worker")
)
KINDS_IN_TEXTS: Final = ("member", "group", "topic", "transaction", "instance")
"""Kinds of names that texts contain: a coordinator's key, the reason for rejoining a group."""
SHORT_NAME: Final = 4
"""A name of fewer characters is found in texts only as a word of its own."""
WORDS: Final = frozenset(
    ("protocols", "protocol_type", "protocol_name", "assignor", "server_assignor", "mechanism", "mechanisms", "configs",
     "configuration_keys", "supported_features", "finalized_features", "client_software_name")
)  # fmt: skip
"""Fields, and arrays by their labels, with words of Kafka and of clients: ``roundrobin`` is no name of a topic."""
MAX_TEXT_NAMES: Final = 200
MAX_LISTED: Final = 20
MAX_NAMED: Final = 5
MAX_MATCHED: Final = 200
"""Names of a kind on each side that are matched by their uses."""
LEAST_LIKENESS: Final = 0.5
"""Of generated names: how many of their uses they have in common."""
A_PARTITION: Final = Placeholder("a partition")


class MatchedNames(NamedTuple):
    """Two names that are matched with each other."""

    kind: str
    a: str
    b: str

    @property
    def common(self) -> EntityName:
        """What both are renamed to."""
        return EntityName(self.kind, f"{self.a}/{self.b}")


NamesByKind = dict[str, dict[str, None]]


class NameMatching:
    """Renames the names of each side to their common ones."""

    def __init__(self, a: NamesByKind, b: NamesByKind, uses: Sequence[NameUses]) -> None:
        self._common: tuple[dict[EntityName, EntityName], dict[EntityName, EntityName]] = ({}, {})
        self._own: tuple[dict[EntityName, EntityName], dict[EntityName, EntityName]] = ({}, {})
        self.matched: list[MatchedNames] = []
        self.left_out: tuple[set[EntityName], set[EntityName]] = (set(), set())
        """Names that a side sees in responses alone."""
        self.listed: tuple[Mapping[str, Set[EntityName]], Mapping[str, Set[EntityName]]] = ({}, {})
        """By API names with which a side does something because of a list (`listed_names`), which has to be found when
        the names are matched."""
        words = NameWords()
        every = {
            kind: [[EntityName(kind, name) for name in side.get(kind, {})] for side in (a, b)]
            for kind in dict.fromkeys((*a, *b))
        }
        for kind, names in every.items():
            if kind not in GENERATED_KINDS:
                _by_tier(names, uses, words)  # a first time, for the words
        for kind, names in every.items():
            if kind not in GENERATED_KINDS:
                self._match(kind, names, uses, words)
        for kind, names in every.items():
            if kind in GENERATED_KINDS:
                self._number(kind, names, uses)
        self._in_texts = [self._text_pattern(side) for side in self._common]
        of_both = [self._of_both(side, (a, b)[side], (b, a)[side]) for side in (0, 1)]
        self.partitions = [use.partitions(topics) for use, topics in zip(uses, of_both, strict=True)]
        """The partitions of the topics that both sides have."""

    @property
    def compares_partitions_together(self) -> bool:
        """Whether partitions of a topic are not distinguished."""
        return self.partitions[0] != self.partitions[1]

    def notes(self) -> Iterator[str]:
        """Yield what a reader of the comparison should know of names."""
        for each in self.matched[:MAX_LISTED]:
            yield f"{each.kind} {each.a} of A is compared with {each.b} of B"
        if len(self.matched) > MAX_LISTED:
            yield f"{len(self.matched) - MAX_LISTED:,} more names are compared with each other"
        for side, names in zip("AB", self.left_out, strict=True):
            for kind in sorted({name.kind for name in names}):
                of_kind = sorted(name.text for name in names if name.kind == kind)
                more = ", …" if len(of_kind) > MAX_NAMED else ""
                yield (f"{counted(len(of_kind), kind)} of {side} that no request names:"
                       f" {', '.join(of_kind[:MAX_NAMED])}{more}")  # fmt: skip
        for side, other, by_api in zip("AB", "BA", self.listed, strict=True):
            alone = sorted({f"{name.kind} {name.text}" for of_api in by_api.values() for name in of_api})
            more = ", …" if len(alone) > MAX_NAMED else ""
            if alone:
                yield f"what {side} alone does with {', '.join(alone[:MAX_NAMED])}{more}, which a list of {other} lacks"
        if self.compares_partitions_together:
            yield "partition numbers, as the topics of the two sides have different partitions"

    def _of_both(self, side: int, mine: NamesByKind, other: NamesByKind) -> set[EntityName]:
        """Return a side's topics that match one of the other side and are compared."""
        common = mine.get("topic", {}).keys() & other.get("topic", {}).keys()
        pairs = [(each.a, each.b) for each in self.matched if each.kind == "topic"]
        elsewhere = {name for pair in pairs for name in pair}
        matched = {pair[side] for pair in pairs}
        return {EntityName("topic", name) for name in common - elsewhere | matched} - self.left_out[side]

    def _match(self, kind: str, names: list[list[EntityName]], uses: Sequence[NameUses], words: NameWords) -> None:
        """Match the names of a kind that programs choose."""
        equal, pairs = _by_tier(names, uses, words)
        for one, other in pairs:
            found = MatchedNames(kind, one.text, other.text)
            self.matched.append(found)
            for side, name in enumerate((one, other)):
                self._common[side][name] = found.common
                self._own[side][found.common] = name
        if kind not in SEEN_KINDS:
            return
        for side, used in enumerate(uses):
            matched = {pair[side]: pair[1 - side] for pair in pairs} | {name: name for name in equal}
            self.left_out[side].update(
                name for name in names[side]
                if used.tier(name) is Tier.SEEN
                and not (name in matched and uses[1 - side].tier(matched[name]) is not Tier.SEEN)
            )  # fmt: skip

    def _number(self, kind: str, names: list[list[EntityName]], uses: Sequence[NameUses]) -> None:
        """Match the names of a kind that a run generates."""
        roles = [
            {name: _Role(frozenset(self._common[side].get(each, each) for each in used.company(name)), used.of(name))
             for name in names[side]}
            for side, used in enumerate(uses)
        ]  # fmt: skip
        for side, common in enumerate(_numbered(kind, names, roles)):
            self._common[side].update(common)

    @staticmethod
    def _text_pattern(texts: dict[EntityName, EntityName]) -> tuple[re.Pattern[str], dict[str, str]]:
        """Return a pattern for names in texts, longer ones first, and their replacements."""
        replacements = {
            name.text: f"a {name.kind}" if name.kind in COUNTED_KINDS else f"{name.kind} {common.text}"
            for kind in KINDS_IN_TEXTS
            for name, common in texts.items()
            if name.kind == kind and name.text
        }
        longest = sorted(replacements, key=len, reverse=True)[:MAX_TEXT_NAMES]
        return re.compile("|".join(map(_in_text, longest)) or r"(?!)"), replacements

    def value(self, side: int, value: ComparedValue) -> ComparedValue:
        """Return a value with its names replaced; `side` is 0 for A, 1 for B."""
        if isinstance(value, EntityName):
            return self._common[side].get(value, value)
        if isinstance(value, str) and value:
            pattern, replacements = self._in_texts[side]
            return pattern.sub(lambda match: replacements[match[0]], value)
        return value

    def value_at(self, side: int, path: LeafPath, value: ComparedValue) -> ComparedValue:
        """Return the value of a field with its names replaced, and the number of a partition if all are compared
        together."""
        if self.compares_partitions_together and type(value) is int and holds_partitions(path):
            return A_PARTITION
        names = [step for step in path if isinstance(step, str)]
        is_word = bool(names) and (
            names[-1] in WORDS or (names[-1] == "name" and names[-2:-1] != [] and names[-2] in WORDS)
        )
        return value if is_word and isinstance(value, str) else self.value(side, value)

    def own(self, side: int, value: ComparedValue) -> ComparedValue:
        """Return what a side itself calls a common name."""
        return self._own[side].get(value, value) if isinstance(value, EntityName) else value

    def is_key_left_out(self, side: int, key: MatchingKey) -> bool:
        """Return whether the requests of a side's key are not compared."""
        return not self.listed[side].get(key.api, frozenset()).isdisjoint(key.subject)

    def is_left_out(self, side: int, api: str, path: LeafPath, value: ComparedValue = None) -> bool:
        """Return whether a field belongs to what is not compared, or a value names it."""
        left_out, listed = self.left_out[side], self.listed[side].get(api, frozenset())
        if not (left_out or listed):
            return False
        named = [value, *(step.value for step in path if isinstance(step, ElementLabel))]
        return any(each in left_out or each in listed for each in named)

    def path(self, side: int, path: LeafPath) -> LeafPath:
        """Return a path with the names in its labels replaced."""
        return tuple(self._step(side, path, n) for n in range(len(path)))

    def _step(self, side: int, path: LeafPath, at: int) -> str | ElementLabel:
        step = path[at]
        if isinstance(step, str):
            return step
        if self.compares_partitions_together and is_partition_label(path, at):
            return UNLABELED
        if isinstance(step.value, str) and at > 0 and path[at - 1] in WORDS:
            return step
        return ElementLabel(self.value(side, step.value))

    def own_key(self, side: int, key: MatchingKey) -> MatchingKey:
        """Return a key with the names that a side has itself."""
        return _renamed(key, self._own[side])

    def key(self, side: int, key: MatchingKey) -> MatchingKey:
        """Return a key with the names in its subject replaced."""
        return _renamed(key, self._common[side])


def _renamed(key: MatchingKey, names: Mapping[EntityName, EntityName]) -> MatchingKey:
    subject = tuple(names.get(each, each) if isinstance(each, EntityName) else each for each in key.subject)
    return key._replace(subject=subject)


def _in_text(name: str) -> str:
    """Return a pattern for a name in a text."""
    pattern = re.escape(name)
    return pattern if len(name) >= SHORT_NAME else rf"(?<![^\W_]){pattern}(?![^\W_])"


def _by_tier(
    names: list[list[EntityName]], uses: Sequence[NameUses], words: NameWords
) -> tuple[set[EntityName], list[tuple[EntityName, EntityName]]]:
    """Return which of the names that both sides have match themselves, and the pairs of other names that match."""
    equal: set[EntityName] = set()
    pairs: list[tuple[EntityName, EntityName]] = []
    for tier in sorted(Tier, reverse=True):
        taken = [equal | {pair[side] for pair in pairs} for side in (0, 1)]
        free = [
            [name for name in names[side] if name not in taken[side] and uses[side].tier(name) >= tier]
            for side in (0, 1)
        ]
        same = set(free[0]) & set(free[1])
        equal |= same
        if tier is not Tier.SEEN:
            others = [[name for name in of_side if name not in same] for of_side in free]
            pairs += _by_use(others[0], others[1], uses, words)
    return equal, pairs


class _PossiblePair(NamedTuple):
    """Two names that may be matched, by their places."""

    likeness: tuple[float, ...]
    i: int
    j: int


def _by_use(
    a: list[EntityName], b: list[EntityName], uses: Sequence[NameUses], words: NameWords
) -> list[tuple[EntityName, EntityName]]:
    """Match names that work alike: of those the ones with the same words, and then those that are the most alike in all
    uses. Names that have no use in requests in common are not matched."""

    @cache  # many names have the same uses
    def of_uses(mine: frozenset[Use], its: frozenset[Use]) -> tuple[float, float] | None:
        if all(use.part != "request" for use in mine & its):
            return None
        work = [{use.api for use in each if use.is_work} for each in (mine, its)]
        return 1.0 if work[0] == work[1] else _likeness(*work), _likeness(mine, its)

    own, others = (
        [(name.text, frozenset(side.of(name))) for name in names[:MAX_MATCHED]]
        for side, names in zip(uses, (a, b), strict=True)
    )
    candidates = [
        _PossiblePair((alike[0], words.likeness(one, other), alike[1]), i, j)
        for i, (one, mine) in enumerate(own)
        for j, (other, its) in enumerate(others)
        if (alike := of_uses(mine, its)) is not None
    ]
    words.learn((a[each.i].text, b[each.j].text) for each in _certain(candidates))
    return [(a[i], b[j]) for i, j in _chosen(candidates)]


def _certain(candidates: Sequence[_PossiblePair]) -> Iterator[_PossiblePair]:
    """Yield those of which either name is more like the other one than like all others."""
    likenesses: dict[tuple[int, int], list[tuple[float, ...]]] = {}
    for each in candidates:
        for end in ((0, each.i), (1, each.j)):
            likenesses.setdefault(end, []).append(each.likeness)
    most = {end: (max(of_end), of_end.count(max(of_end))) for end, of_end in likenesses.items()}
    return (each for each in candidates if most[0, each.i] == most[1, each.j] == (each.likeness, 1))


def _chosen(candidates: Iterable[_PossiblePair]) -> list[tuple[int, int]]:
    """Return the pairs of which each name is in one: the most alike first, and of those the first to appear."""
    chosen: dict[int, int] = {}
    taken: set[int] = set()
    ordered = sorted(candidates, key=lambda each: (abs(each.i - each.j), each.i + each.j, each.i))
    for _, i, j in sorted(ordered, key=attrgetter("likeness"), reverse=True):
        if i not in chosen and j not in taken:
            chosen[i] = j
            taken.add(j)
    return sorted(chosen.items())


def _likeness(one: Set[object], other: Set[object]) -> float:
    """Return how many of both have both, from 0 to 1."""
    return len(one & other) / max(1, len(one | other))


class _Role(NamedTuple):
    """What a generated name is for."""

    company: Set[EntityName]
    """The groups and transactions whose requests have it: the common names."""
    uses: Set[Use]


def _numbered(
    kind: str, names: list[list[EntityName]], roles: Sequence[Mapping[EntityName, _Role]]
) -> tuple[dict[EntityName, EntityName], dict[EntityName, EntityName]]:
    """Return the common names of generated ones: numbers. Names that have no counterpart share the number of the one
    of their own side that is used the most like them, among the first ones."""
    common: tuple[dict[EntityName, EntityName], dict[EntityName, EntityName]] = ({}, {})
    likenesses = (
        _PossiblePair(tuple(map(_likeness, roles[0][one], roles[1][other])), i, j)
        for i, one in enumerate(names[0][:MAX_MATCHED])
        for j, other in enumerate(names[1][:MAX_MATCHED])
    )
    alike = (each for each in likenesses if each.likeness[-1] >= LEAST_LIKENESS)
    for number, pair in enumerate(_chosen(alike), 1):
        for side, at in enumerate(pair):
            common[side][names[side][at]] = EntityName(kind, f"#{number}")
    for side, of_side in enumerate(names):
        by_role = {frozenset[object]().union(*roles[side][name]): number for name, number in common[side].items()}
        for name in of_side:
            if name not in common[side]:
                mine = frozenset[object]().union(*roles[side][name])
                if mine not in by_role:
                    compared = islice(by_role, MAX_MATCHED)
                    near = max(compared, key=lambda each: _likeness(mine, each), default=frozenset[object]())
                    is_near = _likeness(mine, near) > 0
                    by_role[mine] = by_role[near] if is_near else EntityName(kind, f"#{len(common[side]) + 1}")
                common[side][name] = by_role[mine]
    return common
