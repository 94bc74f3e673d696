"""`kdissect explain`: a page on a message, a finding, an error, or a rule of `kdissect check`."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final

from dissector.analysis.conformance import RULES
from dissector.analysis.conformance.rule import ProtocolRule
from dissector.cli.errors import print_error
from dissector.cli.explain_message import message_page
from dissector.cli.explain_reference import REFERENCES
from dissector.cli.render.pages import DIM, TITLE, Line, print_lines, title, wrapped
from dissector.findings.codes import CODES
from dissector.findings.codes import explain as explain_finding
from dissector.findings.explanation import Explanation
from dissector.protocol.explain.target import UnknownTargetError, find_target, normalized, target_names
from dissector.protocol.schema.errors import EXPECTED_ERRORS, ErrorInfo, known_errors

MOST_NEAR: Final = 4
"""Similar names in an error."""
SHORTEST_PART: Final = 3
"""Characters of a word that is looked for inside names."""


def explain(word: str, version: str | None) -> int:
    """Print the page; return the exit code."""
    page = _page_without_versions(word)
    if page is not None:
        return print_lines(page) if version is None else print_error(f"{word} has no versions: leave {version} out")
    try:
        target = find_target(word)
        number = target.version(version)
    except UnknownTargetError as error:
        near = [] if word.isdecimal() or version is not None else _near(word)
        return print_error(f"nothing is called {word!r}; did you mean {', '.join(near)}?" if near else str(error))
    return print_lines(message_page(target, number))


def _page_without_versions(word: str) -> Iterable[Line] | None:
    """Return the page on what is no message; None if the word names nothing of the kind."""
    name = word.lower()
    if name in REFERENCES:
        return REFERENCES[name]()
    if (explanation := explain_finding(name)) is not None:
        return _finding(explanation)
    for each in known_errors().values():
        if each.name.lower() == name:
            return _error(each)
    rule = next((each for each in RULES if each.code == name), None)
    return None if rule is None else _rule(rule)


def _near(word: str) -> list[str]:
    """Return names like a word: those that it is a part of, or else those that are spelled alike."""
    names = target_names() | {normalized(name): name for name in _names_without_versions()}
    wanted = normalized(word)
    found = [name for name in sorted(names, key=len) if wanted in name] if len(wanted) >= SHORTEST_PART else []
    found = found or get_close_matches(wanted, names, n=MOST_NEAR)
    return list(dict.fromkeys(names[name] for name in found))[:MOST_NEAR]


def _names_without_versions() -> Iterator[str]:
    yield from CODES
    yield from (each.name for each in known_errors().values())
    yield from (each.code for each in RULES)


def _finding(explanation: Explanation) -> Iterator[Line]:
    yield [(explanation.title, TITLE)]
    yield [(f"  {explanation.code}, {explanation.severity}", DIM)]
    words = (explanation.what, explanation.why, explanation.what_to_do)
    for heading, text in zip(("What it means", "Why it happens", "What to do"), words, strict=True):
        yield from title(heading)
        yield from wrapped(text, 2)


def _error(error: ErrorInfo) -> Iterator[Line]:
    yield [(error.name, TITLE)]
    yield [(f"  error code {error.code}, {'' if error.retriable else 'not '}retriable", DIM)]
    yield from title("What a client should do")
    yield from wrapped(error.advice, 2)
    for response in sorted(name for name, code in EXPECTED_ERRORS if code == error.code):
        yield from wrapped(f"In {response} it is a normal step of the protocol.", 2)
    yield from title("Where it occurs in a capture")
    yield [(f"  kdissect show FILE -Y 'error == {error.name}'", "")]


def _rule(rule: type[ProtocolRule]) -> Iterator[Line]:
    yield [(f"{rule.title[0].upper()}{rule.title[1:]}", TITLE)]
    yield [(f"  {rule.code}, a rule for the {rule.side}", DIM)]
    yield from title("What requires it")
    yield from wrapped(rule.source, 2)
    yield from title("Whether a capture keeps it")
    yield [("  kdissect check FILE", "")]
