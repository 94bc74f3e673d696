"""A rule for faults: `api == Produce && topic == "orders": error NOT_LEADER_OR_FOLLOWER, first 3`.

Left of the last colon is a filter, as everywhere; none stands for all requests. Right of it is an action, then triggers
behind commas. No action and no trigger has a colon.

Invariants: any text is a rule or a `FaultError` with a column; `str` of a rule is read as the same rule.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from dissector.filter import Filter, FilterError, parse
from dissector.filter.early_evaluation import asks_response, never_known
from dissector.proxy_server.faults.actions import (
    ACTIONS,
    CloseFault,
    DropFault,
    ErrorFault,
    FaultAction,
    SlowFault,
    read_action,
)
from dissector.proxy_server.faults.errors import FaultError, WordError
from dissector.proxy_server.faults.triggers import NAMES as TRIGGERS
from dissector.proxy_server.faults.triggers import FaultTrigger, read_trigger
from dissector.proxy_server.faults.words import words

LONGEST: Final = 1 << 16
"""Characters of a rule, at most."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


@dataclass(frozen=True)
class FaultRule:
    """A rule as it is written."""

    filter_text: str
    """Empty for all requests."""
    action: FaultAction
    triggers: tuple[FaultTrigger, ...] = ()
    name: str = ""
    """By which it is listed; its number if empty."""

    def __str__(self) -> str:
        said = ", ".join(map(str, (self.action, *self.triggers)))
        return f"{self.filter_text}: {said}" if self.filter_text else said

    @cached_property
    def filter(self) -> Filter | None:
        """The filter, compiled; None for all requests."""
        return parse(self.filter_text) if self.filter_text else None


def read_rule(text: str, name: str = "") -> FaultRule:
    """Return the rule that a text is. Raises `FaultError`."""
    if len(text) > LONGEST:
        raise FaultError(text, 0, f"a rule has at most {LONGEST:,} characters")
    if name and not _NAME.fullmatch(name):
        raise FaultError(name, 0, f"{name!r:.80} is not a name; use letters, digits and . _ -")
    filter_text, colon, _ = text.rpartition(":")
    start = len(filter_text) + len(colon)
    filter_text = filter_text.strip()
    action, triggers = _said(text, start, is_after_colon=bool(colon))
    if colon and not filter_text:
        raise FaultError(text, 0, "the filter before the colon is missing; without a colon, all requests match")
    rule = FaultRule(filter_text, action, triggers, name)
    _check_filter(text, rule)
    return rule


def _said(text: str, start: int, *, is_after_colon: bool) -> tuple[FaultAction, tuple[FaultTrigger, ...]]:
    """Read the action and the triggers that begin at a column."""
    parts, at = [], start
    for part in text[start:].split(","):
        parts.append((at, words(part, at)))
        at += len(part) + 1
    (column, first), *others = parts
    if not first:
        raise FaultError(text, column, f"the action is missing: {', '.join(ACTIONS)}")
    if not is_after_colon and first[0].text not in ACTIONS:
        raise FaultError(text, 0, "write a rule as FILTER: ACTION, such as api == Produce: delay 200ms")
    try:
        action = read_action(first)
        triggers = []
        for column, found in others:
            if not found:
                raise WordError(column, "the trigger after the comma is missing: first 3, after 10, every 5")
            if (trigger := read_trigger(found)) is not None:
                triggers.append(trigger)
    except WordError as error:
        wrong = next(found for at, found in reversed(parts) if at <= error.column)
        trigger_name = next((each for each in wrong[1:] if each.text in TRIGGERS), None)
        if trigger_name is not None:
            message = f"a comma is missing before {trigger_name.text!r}"
            raise FaultError(text, trigger_name.column, message) from None
        raise FaultError(text, error.column, error.message, error.near) from None
    return action, tuple(triggers)


def _check_filter(text: str, rule: FaultRule) -> None:
    """Compile the filter. Raises `FaultError` if it is none, or asks for what is not known in time."""
    lead = len(text) - len(text.lstrip())
    try:
        found = rule.filter
    except FilterError as error:
        raise FaultError(text, lead + error.column, error.message, error.near) from None
    if found is None:
        return
    if (field := never_known(found.condition)) is not None:
        at = max(0, text.find(field))
        raise FaultError(text, at, f"a fault can't ask for {field}: only a finished capture has it")
    if asks_response(found.condition) and is_of_request(rule.action):
        words = f"{rule.action} comes before the response, for which the filter asks"
        raise FaultError(text, lead, words, _with_response(rule.action))


def is_of_request(action: FaultAction) -> bool:
    """Return whether an action takes place before there is a response, whatever the API."""
    match action:
        case ErrorFault(acted=False) | CloseFault(after=False) | DropFault(after=False) | SlowFault():
            return True
    return False


def _with_response(action: FaultAction) -> tuple[str, ...]:
    match action:
        case ErrorFault(code=code):
            return (str(ErrorFault(code, acted=True)),)
        case CloseFault():
            return (str(CloseFault(after=True)),)
        case DropFault():
            return (str(DropFault(after=True)),)
    return ()
