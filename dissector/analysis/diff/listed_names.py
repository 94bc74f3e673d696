"""Names that a cluster had in time to be listed on one side and not on the other: what one side alone does with them.

Some clients list the topics or groups of a cluster and work with what they find. MirrorMaker mirrors its own heartbeats
if their topic was there before it listed topics, and looks up the offsets of a group that happens to exist. Where both
sides are one client, and one of them does with a name what the other does not, the cluster is why

  * if the one had got a list with the name before,
  * and the other one got a list without it;
  * unless the other one does not know the name at all and the one works with it: programs are told what to work with.

What a client calls after such a name follows from it: the topic ``shop.heartbeats``.
"""

from collections.abc import Iterator, Sequence, Set
from typing import Final, NamedTuple

from dissector.analysis.diff.compared_values import EntityName
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import ALL_TOPICS
from dissector.analysis.diff.message_leaves import ElementLabel
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.name_uses import NameUses, Use

LISTS: Final = {"Metadata": ("topic", "topics"), "ListGroups": ("group", "groups")}
"""By API the kind of the names that its responses list, and the array that has them."""
JOINTS: Final = (".", "-", "_")
"""What stands between a name and what a client puts in front of it."""
NamesByApi = dict[str, set[EntityName]]


class _Listed(NamedTuple):
    """How often one name is in lists."""

    lists: int
    row: int
    """The first of them."""


NEVER: Final = _Listed(0, 1 << 62)


class _Lists:
    """The lists that one side got."""

    def __init__(self, uses: NameUses) -> None:
        self.counts: dict[str, int] = {}
        """How many there are of each kind of name."""
        self.names: dict[EntityName, _Listed] = {}
        for key, profile in uses.keys.items():
            if key.api in LISTS and (key.api != "Metadata" or key.subject == ALL_TOPICS):
                self._add(profile, *LISTS[key.api])

    def _add(self, profile: KeyProfile, kind: str, array: str) -> None:
        for place, values in profile.fields.items():
            match place:
                case ("response", (field,)) if field == array:
                    self.counts[kind] = self.counts.get(kind, 0) + values.total()
                case ("response", (field, ElementLabel(EntityName() as name), str())) if field == array:
                    known = self.names.get(name, NEVER)  # some fields are in some versions alone
                    row = min(known.row, profile.first_rows[place])
                    self.names[name] = _Listed(max(known.lists, values.total()), row)

    def lack(self, kind: str, name: EntityName | None) -> bool:
        """Return whether one of the lists of a kind is without a name."""
        having = self.names[name].lists if name in self.names else 0
        return having < self.counts.get(kind, 0)


def listed_on_one_side(uses: Sequence[NameUses], names: NameMatching) -> tuple[NamesByApi, NamesByApi]:
    """Return, for each side and by API, the names with which that side alone does something because of a list."""
    lists = [_Lists(each) for each in uses]
    found: tuple[NamesByApi, NamesByApi] = ({}, {})
    if all(each.counts for each in lists):  # hardly ever
        for side in (0, 1):
            for name, alone in _by_name(side, lists, uses, names):
                for use in alone:
                    found[side].setdefault(use.api, set()).add(name)
    return found


def _by_name(
    side: int, lists: Sequence[_Lists], uses: Sequence[NameUses], names: NameMatching
) -> Iterator[tuple[EntityName, Set[Use]]]:
    """Yield names of a side and what it alone does with them."""
    mine, its = uses[side], uses[1 - side]
    of_other = {names.value(1 - side, name): name for name in its}
    in_time: set[EntityName] = set()
    for name, listed in lists[side].names.items():
        other = of_other.get(names.value(side, name))
        alone = mine.of(name) - (its.of(other) if other is not None else frozenset())
        asked = {use for use in alone if use.part == "request"}
        is_told = other is None and any(use.is_work for use in asked)
        is_after = all(mine.first_row(name, use) > listed.row for use in asked)
        if asked and not is_told and is_after and lists[1 - side].lack(name.kind, other):
            in_time.add(name)
            yield name, alone
    for name in mine:
        if names.value(side, name) not in of_other and any(_is_called_after(name, each) for each in in_time):
            yield name, mine.of(name)


def _is_called_after(name: EntityName, other: EntityName) -> bool:
    return name.kind == other.kind and name.text.endswith(tuple(joint + other.text for joint in JOINTS))
