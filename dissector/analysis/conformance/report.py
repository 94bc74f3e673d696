"""What became of the rules as a report: the broken ones of each client, with some of the messages that break them."""

from collections.abc import Iterator, Sequence
from typing import Final

from dissector.analysis.conformance.check import Breach, CheckResult
from dissector.analysis.conformance.rule import ProtocolRule
from dissector.analysis.rendering import HeadingBlock, ListBlock, ReportBlock, TableBlock
from dissector.core.text import byte_range, clean, counted

SHOWN: Final = 3
"""Messages that a report has for each rule and client; all are counted."""


def check_report(result: CheckResult) -> Iterator[ReportBlock]:
    """Yield the report: counts, then the broken rules of each client."""
    broken = [each for each in result.rules if result.counts(each)[1]]
    kept = [each for each in result.rules if result.counts(each)[0] and each not in broken]
    unseen = [each for each in result.rules if not any(result.counts(each))]
    read = f"{counted(result.exchanges, 'exchange')} in {counted(result.files, 'file')}"
    rules = f"{counted(len(broken), 'rule')} broken, {len(kept):,} kept, {len(unseen):,} not applicable"
    yield HeadingBlock(1, f"{read}: {rules}")
    by_key: dict[tuple[str, str], list[Breach]] = {}
    for each in result.breaches:
        by_key.setdefault((each.client, each.rule.code), []).append(each)
    for client in result.clients:
        found = {rule: by_key[client, rule.code] for rule in broken if (client, rule.code) in by_key}
        if found:
            yield HeadingBlock(2, clean(client))
        for rule, breaches in found.items():
            yield _breaches(rule, breaches, result.broken[rule.code, client], result.kept[rule.code, client])
    if len(result.clients) > 1 and broken:
        yield HeadingBlock(2, "Broken rules by client")
        yield _table(result, broken)


def _where(breach: Breach) -> str:
    return f"exchange {breach.exchange:,}, {place(breach)}"


def place(breach: Breach) -> str:
    """Return which bytes of which message break a rule."""
    field = f" {breach.path}" if breach.path else ""
    return f"{breach.part}{field}, {byte_range(breach.start, breach.size)}"


def _breaches(rule: ProtocolRule, breaches: list[Breach], broken: int, kept: int) -> ListBlock:
    blamed = "" if rule.side == "client" else "the broker: "
    details = [clean(f"{each.file} {_where(each)}: {each.words}") for each in breaches[:SHOWN]]
    if broken > SHOWN:
        details.append(f"and {broken - SHOWN:,} more")
    text = f"{rule.code}: {blamed}{rule.title} ({broken:,} of {counted(broken + kept, 'message')})"
    return ListBlock(text, rule.source, tuple(details))


def _table(result: CheckResult, broken: Sequence[ProtocolRule]) -> TableBlock:
    clients = [client for client in result.clients if any(result.broken[rule.code, client] for rule in broken)]
    rows = [
        (rule.code, *(_cell(result.broken[rule.code, client], result.kept[rule.code, client]) for client in clients))
        for rule in broken
    ]
    return TableBlock((("", *map(clean, clients)), *rows))


def _cell(broken: int, kept: int) -> str:
    if broken:
        return f"broken {broken:,} of {broken + kept:,}"
    return "kept" if kept else "-"
