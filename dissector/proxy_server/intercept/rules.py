"""What is to be held: `api == Produce`, `responses api == Fetch && topic == orders`.

A filter is about the requests and the responses of its exchanges, or behind `requests` or `responses` about these. One
that asks for the response can hold responses only. None holds everything.

Invariant: any text is a rule or a `FaultError` with a column.
"""

import re
from dataclasses import dataclass
from typing import Final

from dissector.filter import FilterError, parse
from dissector.filter.early_evaluation import asks_response, never_known
from dissector.proxy_server.faults.actions import HoldMessage
from dissector.proxy_server.faults.errors import FaultError
from dissector.proxy_server.faults.rules import LONGEST, FaultRule

NAME: Final = "intercept"
"""By which what a person did is called in the recording."""
_SIDES: Final = re.compile(r"\s*(requests|responses)(?:\s+|$)")


@dataclass(frozen=True)
class InterceptRule:
    """A rule as it is written."""

    text: str
    filter_text: str
    """Empty for all exchanges."""
    requests: bool
    responses: bool

    @property
    def rules(self) -> list[FaultRule]:
        """The same as rules of the proxy's hook."""
        sides = [HoldMessage(of_response=False)] * self.requests + [HoldMessage(of_response=True)] * self.responses
        return [FaultRule(self.filter_text, side, (), NAME) for side in sides]


def read_intercept(text: str) -> InterceptRule:
    """Return the rule that a text is. Raises `FaultError`."""
    if len(text) > LONGEST:
        raise FaultError(text, 0, f"a filter has at most {LONGEST:,} characters")
    found = _SIDES.match(text)
    side, start = (found[1], found.end()) if found else ("", 0)
    filter_text = text[start:].strip()
    requests, responses = side != "responses", side != "requests"
    if filter_text:
        start = text.index(filter_text, start)
        try:
            condition = parse(filter_text).condition
        except FilterError as error:
            raise FaultError(text, start + error.column, error.message, error.near) from None
        if (field := never_known(condition)) is not None:
            words = f"what passes can't be asked for {field}: only a finished capture has it"
            raise FaultError(text, max(0, text.find(field)), words)
        if asks_response(condition):
            if side == "requests":
                raise FaultError(text, start, "a request comes before its response, which the filter needs")
            requests = False
    return InterceptRule(text.strip(), filter_text, requests, responses)
