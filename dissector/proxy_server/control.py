"""What the analyzing process may ask of a proxy that runs (`capture/live/commands.py`), carried out in the proxy's.

A command is carried out at once, between two events of the loop; what it returns is sent when it is taken. Whatever a
line has, it is carried out, or refused with one plain line.
"""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from dissector.capture.live import commands, events
from dissector.capture.live.commands import RefusedError
from dissector.core.text import clean
from dissector.proxy_server.faults import FaultError, FaultHook, read_rule
from dissector.proxy_server.faults.files import MOST_RULES
from dissector.proxy_server.intercept.holding import HeldFrame, HeldFrames, closed, dropped, edited, sent_on
from dissector.proxy_server.intercept.rules import read_intercept
from dissector.proxy_server.outbox import Outbox

LONGEST_LIMIT: Final = 3600.0
"""Seconds, of a message that is held."""
Values = Mapping[str, Any]


class Control:
    """Carries out commands on the rules and the held messages of a run."""

    def __init__(self, hook: FaultHook, held: HeldFrames, outbox: Outbox) -> None:
        self._hook = hook
        self._held = held
        self._outbox = outbox
        self._commands: dict[str, Callable[[Values], Values | None]] = {
            commands.ADD_FAULT: self._add_fault, commands.ARM: self._arm, commands.COUNT_FAULTS: self._count,
            commands.INTERCEPT: self._intercept, commands.LIMIT: self._limit, commands.LOOK: self._look,
            commands.SEND_ON: lambda values: sent_on(self._one(values)),
            commands.SEND_ALL: lambda _: self._held.release_all(),
            commands.DROP: lambda values: dropped(self._one(values)),
            commands.CLOSE: lambda values: closed(self._one(values)),
            commands.WAIT: lambda values: self._one(values).wait(self._held.limit), commands.EDIT: self._edit,
        }  # fmt: skip

    def carry_out(self, line: bytes) -> None:
        """Carry out the command of a line, and answer."""
        try:
            asked = json.loads(line)
            number, run = int(asked[commands.ASK]), self._commands[asked[commands.DO]]
        except (ValueError, KeyError, TypeError, RecursionError):
            return  # nobody waits for an answer
        try:
            found = run(asked) or {}
        except (RefusedError, FaultError) as error:
            found = {"error": clean(str(error))}
        except (ValueError, KeyError, TypeError):
            found = {"error": f"{clean(str(asked[commands.DO]))}: the command is not understood"}
        self._outbox.send(events.ANSWER, to=number, **found)

    def _add_fault(self, values: Values) -> Values:
        if len(self._hook.rules) >= MOST_RULES:
            raise RefusedError(f"more than {MOST_RULES:,} rules")
        rule = read_rule(str(values["rule"]), str(values["name"]))
        if rule.name and rule.name in (each.name for each in self._hook.rules):
            raise RefusedError(f"two rules have the name {rule.name}")
        return {"number": self._hook.add(rule).number}

    def _arm(self, values: Values) -> None:
        number = int(values["number"])
        if not 1 <= number <= len(self._hook.rules):
            raise RefusedError(f"no rule has the name {number}")
        self._hook.rules[number - 1].arm(is_armed=bool(values["armed"]))

    def _count(self, _: Values) -> Values:
        return {"counts": self._hook.counts}

    def _intercept(self, values: Values) -> None:
        text = str(values["text"])
        self._hook.hold(read_intercept(text).rules if values["holds"] else ())
        self._held.change(text if values["holds"] else None)

    def _limit(self, values: Values) -> None:
        limit = float(values["seconds"])
        if not 0 < limit <= LONGEST_LIMIT:
            raise RefusedError(f"{limit:g} s is not a limit above 0 and up to {LONGEST_LIMIT:g} s")
        self._held.limit = limit
        self._held.on_change()

    def _one(self, values: Values) -> HeldFrame:
        found = self._held.find(int(values["number"]))
        if found is None:
            raise RefusedError("it is no longer held: it was sent on, or its connection closed")
        return found

    def _look(self, values: Values) -> Values:
        return {"frame": base64.b64encode(self._one(values).frame).decode()}

    def _edit(self, values: Values) -> None:
        try:
            frame = base64.b64decode(str(values["frame"]), validate=True)
        except binascii.Error:
            raise RefusedError("the edited message did not arrive completely") from None
        if why := edited(self._one(values), frame, clean(str(values["paths"]))):
            raise RefusedError(why)
