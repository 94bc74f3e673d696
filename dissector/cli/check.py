"""`kdissect check`: hold captures to the rules of the protocol."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Final

from dissector.analysis.conformance import RULES, Breach, CheckResult, ProtocolRule, a_rule, check
from dissector.analysis.conformance.report import check_report, place
from dissector.analysis.outcomes import RuleOutcome, RuleStatus
from dissector.analysis.rendering import HeadingBlock, ListBlock, TableBlock
from dissector.capture_session import Capture
from dissector.cli.errors import BAD_INPUT, NEGATIVE, UsageError, print_error
from dissector.cli.formats import RuleFormat
from dissector.cli.options import CaptureOptions
from dissector.cli.render.outcomes import write_blocks, write_outcomes
from dissector.cli.show import read_rows
from dissector.cli.wrong_listeners import print_wrong_listeners
from dissector.core.process_memory import infrequent_collection
from dissector.core.text import counted

TITLE: Final = "kdissect check"


def check_captures(files: Sequence[str], form: RuleFormat, ignored: str | None, *, options: CaptureOptions) -> int:
    """Check and print; return the exit code: 0 if all rules are kept, 1 if not, 2 if there is nothing to check."""
    rules = _without(ignored)
    with infrequent_collection(), ExitStack() as stack:
        captures: list[tuple[str, Capture]] = []
        for file in files:
            capture = stack.enter_context(options.open([file]))
            if not read_rows(capture):
                return BAD_INPUT
            print_wrong_listeners(capture)
            captures.append((file, capture))
        result = check(captures, rules)
    if not result.exchanges:
        return print_error(f"{files[0]}: contains no Kafka request")
    if form in (RuleFormat.JSON, RuleFormat.JUNIT, RuleFormat.SARIF):
        write_outcomes(form, TITLE, list(outcomes(result)))
    else:
        write_blocks(form, check_report(result))
    return NEGATIVE if result.broken else 0


def list_rules(form: RuleFormat) -> int:
    """Print all rules with their sources."""
    if form in (RuleFormat.MARKDOWN, RuleFormat.HTML):
        head = ("rule", "whose", "what is required", "source")
        rows = (head, *((each.code, each.side.value, each.title, each.source) for each in RULES))
        write_blocks(form, [HeadingBlock(1, f"{len(RULES)} rules"), TableBlock(rows)])
        return 0
    blocks = [ListBlock(f"{each.code}: {each.title}", each.side.value, (each.source,)) for each in RULES]
    write_blocks(RuleFormat.TEXT, [HeadingBlock(1, f"{len(RULES)} rules"), *blocks])
    return 0


def _without(ignored: str | None) -> list[ProtocolRule]:
    """Return the rules that are not ignored. Raises `UsageError`."""
    words = {word.strip() for word in (ignored or "").split(",") if word.strip()}
    for word in sorted(words - {each.code for each in RULES}):
        raise UsageError(f"--ignore: {word!r} is not {a_rule(word)}")
    return [each for each in RULES if each.code not in words]


def outcomes(result: CheckResult) -> Iterator[RuleOutcome]:
    """Yield an outcome for each client and rule, and one for each rule that no message was about."""
    first: dict[tuple[str, str], Breach] = {}
    for each in result.breaches:
        first.setdefault((each.rule.code, each.client), each)
    for rule in result.rules:
        for client in result.clients:
            key = rule.code, client
            if not result.kept[key] and not result.broken[key]:
                continue
            found = first.get(key)
            status = RuleStatus.HELD if found is None else RuleStatus.BROKEN
            of_all = f"{result.broken[key]:,} of {counted(result.broken[key] + result.kept[key], 'message')}"
            words = "" if found is None else f"{place(found)}: {found.words} ({of_all})"
            yield RuleOutcome(
                rule.code, status, words, found.file if found else "", None,
                found.exchange if found else None, rule.source, rule.title, client,
            )  # fmt: skip
        if not any(result.counts(rule)):
            words = "no message involves this rule"
            yield RuleOutcome(rule.code, RuleStatus.NOT_SEEN, words, "", source=rule.source, title=rule.title)
