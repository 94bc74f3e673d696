"""The lines of what a check or a baseline found, without a screen. A line's target is the location that shows it."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from dissector.analysis.conformance import Breach, CheckResult
from dissector.analysis.conformance.rule import REST
from dissector.analysis.diff.behavior import place_of
from dissector.analysis.outcomes import RuleOutcome, RuleStatus
from dissector.core.text import clean, counted
from dissector.exchange.model import Exchange
from tui.location_history import Location
from tui.widgets.line_list import StyledLine

MARKS: Final = {
    RuleStatus.BROKEN: ("≠", "bad"), RuleStatus.ALLOWED: ("≠", "dim"), RuleStatus.HELD: ("=", "good"),
    RuleStatus.NOT_SEEN: ("·", "dim"),
}  # fmt: skip
"""By status: a sign and the role of its color."""
RULE_WIDTH: Final = 34
_INDEX: Final = re.compile(r"\[\d+\]")


def check_lines(result: CheckResult, *, whole: bool = False) -> list[StyledLine]:
    """Return the rules that are broken, by client, with the messages that break them; then those that are kept. What
    is said of several messages is one line with their number, the first one's, unless they are wanted `whole`."""
    lines = [line for client in result.clients for line in _client_lines(result, client, whole=whole)]
    kept = [rule for rule in result.rules if result.counts(rule)[0] and not result.counts(rule)[1]]
    unseen = sum(not any(result.counts(rule)) for rule in result.rules)
    lines.append(StyledLine(((f"{counted(len(kept), 'rule')} kept", "head"),), is_head=True))
    width = max((len(rule.code) for rule in kept), default=0)
    for rule in kept:
        count = f"{result.counts(rule)[0]:>7,}× "
        lines.append(
            StyledLine((("  = ", "good"), (f"{rule.code:<{width}}", "name"), (count, "dim"), (rule.title, "dim")))
        )
    lines.append(StyledLine(((f"  {counted(unseen, 'rule')} not applicable", "dim"),)))
    return lines


def _client_lines(result: CheckResult, client: str, *, whole: bool) -> Iterator[StyledLine]:
    of_client: dict[str, list[Breach]] = {}
    for each in result.breaches:
        if each.client == client:
            of_client.setdefault(each.rule.code, []).append(each)
    if of_client:
        yield StyledLine(
            ((clean(client), "head"), (f"  {counted(len(of_client), 'broken rule')}", "dim")), is_head=True
        )
    for code, breaches in of_client.items():
        rule = breaches[0].rule
        broken, kept = result.broken[code, client], result.kept[code, client]
        whose = "" if rule.side == "client" else "the broker: "
        yield StyledLine(((f"  {code}", "bar"), (f"  {whose}{rule.title}", ""), (f"  [{rule.source}]", "dim")))
        yield StyledLine(((f"    {broken:,} of {counted(broken + kept, 'message')}", "dim"),))
        equal = Counter(map(_said, breaches))
        by_exchange = sorted(breaches, key=lambda breach: breach.exchange)
        firsts = {_said(each): each for each in reversed(by_exchange)}.values()
        for each in by_exchange if whole else sorted(firsts, key=lambda breach: breach.exchange):
            where = " ".join(filter(None, (each.part, each.path)))
            times = 1 if whole else equal[_said(each)]
            pieces = (
                (f"{each.exchange:>8}  ", "dim"), ("≠ ", "bad"), (f"{times:,}× " if times > 1 else "", "warning"),
                (f"{clean(where)}: {clean(each.words)}", ""),
            )  # fmt: skip
            yield StyledLine(pieces, _location(each))
        if broken > len(breaches):
            yield StyledLine(((f"{broken - len(breaches):,} more are not listed", "dim"),))
    if of_client:
        yield StyledLine()


def _said(breach: Breach) -> tuple[str, str, str]:
    """Return what a line says of a message, besides which element of an array is meant."""
    return breach.part, _INDEX.sub("", breach.path), breach.words


def _location(breach: Breach) -> Location:
    """Return where the bytes of a breach are in the tree of its message."""
    path = breach.path if breach.path == REST else f"body.{breach.path}" if breach.path else ""
    return Location(breach.exchange - 1, breach.part, path)


def baseline_lines(outcomes: Sequence[RuleOutcome]) -> list[StyledLine]:
    """Return what became of each line of a baseline, by status; those with an exchange can be opened."""
    lines: list[StyledLine] = []
    for status in MARKS:
        of_status = [each for each in outcomes if each.status is status]
        if of_status:
            words = f"{counted(len(of_status), 'line')} {status.value}"
            lines += [StyledLine(((words, "head"),), is_head=True), *map(_outcome_line, of_status), StyledLine()]
    return lines


def _outcome_line(outcome: RuleOutcome) -> StyledLine:
    sign, role = MARKS[outcome.status]
    number = "" if outcome.exchange is None else str(outcome.exchange)
    pieces = (
        (f"{number:>8}  ", "dim"), (f"{sign} ", role), (f"{clean(outcome.rule):<{RULE_WIDTH}} ", "name"),
        (clean(outcome.message), ""),
    )  # fmt: skip
    if outcome.exchange is None:
        return StyledLine(pieces)
    return StyledLine(pieces, Location(outcome.exchange - 1, "request", _field_of(outcome.rule)))


def _field_of(rule: str) -> str:
    """Return the path of the field that a line of a baseline is about."""
    table, _, name = rule.partition(".")
    if table == "versions":
        return "header.request_api_version"
    place = place_of(name)
    return f"body.{place.path}" if place is not None and place.path else ""


def with_indices(exchange: Exchange, place: Location) -> Location:
    """Return a location whose path, which may have no indices, is that of the first such field."""
    message = exchange.response if place.side == "response" else exchange.request
    if message is None or not place.path or message.tree.find(place.path) is not None:
        return place
    paths = (node.path for node in message.tree.walk())
    return place._replace(path=next((path for path in paths if _INDEX.sub("", path) == place.path), ""))
