"""Pair the exchanges of two sides by their keys: the steps of workflows in order, others from the first on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from dissector.analysis.diff.alignment import IndexPair, align, out_of_order
from dissector.analysis.diff.captured_span import Sights
from dissector.analysis.diff.exchange_pairs import ExchangePairs, PairColumns, Steps, WorkflowSteps, whole_stretch
from dissector.analysis.diff.key_profile import KeyProfile
from dissector.analysis.diff.matching_keys import MatchingKey, Workflow, workflow_of
from dissector.analysis.diff.name_matching import NameMatching
from dissector.analysis.diff.rebalances import is_same_order
from dissector.analysis.diff.result import DiffEntry, DiffReason, PairVerdict
from dissector.analysis.diff.side_profile import SideProfile
from dissector.core.arrays import Int64
from dissector.core.columns import ValueNumbers

NO_EXCHANGES: Final = KeyProfile()


def pair_exchanges(
    sides: Sequence[SideProfile],
    keys: Sequence[Mapping[MatchingKey, KeyProfile]],
    names: NameMatching,
    sights: Sights,
    verdict_of: Callable[[MatchingKey], PairVerdict],
) -> tuple[ExchangePairs, list[DiffEntry]]:
    """Pair all exchanges with the matching ones of the other side; return entries for steps in another order, too.
    `keys` have common names; `verdict_of` a key is that of pairs with its exchanges."""
    pairs = PairColumns()
    order_entries: list[DiffEntry] = []
    numbers = ValueNumbers[MatchingKey]()
    common = [
        np.array([numbers.of(names.key(n, key)) for key in side.key_numbers.values], np.int64)
        for n, side in enumerate(sides)
    ]
    verdicts = [verdict_of(key) for key in numbers.values]
    workflows = [
        {_renamed(names, n, workflow): steps for workflow, steps in side.workflows.items()}
        for n, side in enumerate(sides)
    ]
    for workflow in dict.fromkeys((*workflows[0], *workflows[1])):
        steps = [side.get(workflow, WorkflowSteps()).steps() for side in workflows]
        a, b = (of_side[each.keys] for of_side, each in zip(common, steps, strict=True))
        in_order = align(a.tolist(), b.tolist())
        moved = out_of_order(a.tolist(), b.tolist(), in_order)
        of_steps = [[numbers.values[n] for n in side.tolist()] for side in (a, b)]
        is_other_order = bool(moved) and not is_same_order(of_steps[0], of_steps[1], keys)
        verdicts_moved = [verdicts[n] for n in a[_places(moved, 0)].tolist()]
        _add_steps(pairs, steps, in_order, [verdicts[n] for n in a[_places(in_order, 0)].tolist()])
        _add_steps(pairs, steps, moved, [PairVerdict.ORDER] * len(moved) if is_other_order else verdicts_moved)
        for n, verdict in enumerate((PairVerdict.ONLY_A, PairVerdict.ONLY_B)):
            is_alone = np.ones(len(steps[n].keys), np.bool_)
            is_alone[_places([*in_order, *moved], n)] = False
            pairs.add_alone(steps[n].rows.where(is_alone), verdict)
        if is_other_order and not all(each.is_partial for each in sights):
            order_entries.append(_order_entry(of_steps, steps))
    for key in dict.fromkeys((*keys[0], *keys[1])):
        if workflow_of(key) is None:
            rows = [whole_stretch(side.get(key, NO_EXCHANGES).rows) for side in keys]
            pairs.add_stretches(rows[0], rows[1], [verdict_of(key)])
    share = sides[0].capture_rows / max(1, sides[1].capture_rows)
    return pairs.listed(share), order_entries


def _renamed(names: NameMatching, side: int, workflow: Workflow) -> Workflow:
    return Workflow(*names.key(side, MatchingKey(workflow.matched, workflow.name, workflow.subject, ""))[:3])


def _places(matches: Sequence[IndexPair], side: int) -> Int64:
    """Return the places of matches on one side."""
    return np.array([each[side] for each in matches], np.int64)


def _add_steps(
    pairs: PairColumns, steps: Sequence[Steps], matches: Sequence[IndexPair], verdicts: Sequence[PairVerdict]
) -> None:
    """Pair the exchanges of steps that match."""
    a, b = (each.rows.where(_places(matches, n)) for n, each in enumerate(steps))
    pairs.add_stretches(a, b, verdicts)


def _order_entry(keys: Sequence[Sequence[MatchingKey]], steps: Sequence[Steps]) -> DiffEntry:
    """Return the entry for a workflow whose steps both sides take in another order."""
    texts = [", ".join(key.api for key in side[:8]) + (", …" if len(side) > 8 else "") for side in keys]
    first = [int(each.rows.rows[0]) for each in steps]
    return DiffEntry(
        keys[0][0].api, "", "", DiffReason.ORDER, texts[0], texts[1], len(keys[0]), len(keys[1]),
        row_a=first[0], row_b=first[1],
    )  # fmt: skip
