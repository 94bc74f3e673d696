"""What the analyzing process asks of a recording one, over the same socket as events: lines of JSON, one command each.

A command has a number (`ASK`), and is answered by one event `ANSWER` with that number and what the command returns, or
with `error`, one plain line. Other lines are comments to be written to the file: none of them begins as JSON does. Only
proxies carry out commands.
"""

import json
from typing import Final

ASK: Final = "ask"
DO: Final = "do"
ADD_FAULT: Final = "add-fault"
"""Ask one more rule, `rule`, of a `name` or none; returns its `number`."""
ARM: Final = "arm"
"""Ask rule `number` from now on, or no longer, by `armed`."""
COUNT_FAULTS: Final = "count-faults"
"""Returns `counts`, as the event `FAULTS` has them."""
INTERCEPT: Final = "intercept"
"""Hold what the rule `text` says, in place of what was held before; nothing unless `holds`."""
LIMIT: Final = "limit"
"""Hold messages that come from now on for so many `seconds`."""
LOOK: Final = "look"
"""Returns the `frame` of the held message `number`, in base64."""
SEND_ON: Final = "send-on"
"""Let the held message `number` go on as it is."""
SEND_ALL: Final = "send-all"
"""Let all held messages go on as they are."""
DROP: Final = "drop"
"""Drop the held message `number`: the other side never gets it."""
CLOSE: Final = "close"
"""Close the connection of the held message `number` in its place."""
WAIT: Final = "wait"
"""Hold the message `number` for the whole limit, from now on."""
EDIT: Final = "edit"
"""Let a `frame`, in base64, go on in place of the held message `number`; `paths` name the fields that differ."""
MOST_BYTES: Final = 32 << 20
"""Of a command."""


class RefusedError(Exception):
    """A command that was not carried out; one plain line."""


def command_line(number: int, command: str, values: dict[str, object]) -> bytes:
    """Return a command as it is sent."""
    return json.dumps({ASK: number, DO: command} | values).encode() + b"\n"


def is_command(line: bytes) -> bool:
    """Return whether a line is a command, not a comment."""
    return line.startswith(b"{")
