"""The base class of detectors that look at one exchange: what one message shows by itself.

    class OddSessionEpoch(MessageDetector):
        explanation: ClassVar = Explanation(...)
        apis: ClassVar = frozenset((ApiKey.FETCH,))
        reads: ClassVar = {"request.session_epoch": lambda epochs: epochs % 2 == 1}

        def find(self, fields: ReadFields) -> Iterator[Finding]:
            for path, epoch in fields.places("request.session_epoch"):
                if isinstance(epoch, int) and epoch % 2:
                    yield self.finding(f"session epoch {epoch} is odd", path)

`read_fields` says how fields are named. A field may have a test, of numbers only: it gets an array of many values of
the field, of many messages, and says which of them are suspect. An exchange none of whose values pass a test has no
finding, and is not decoded (`message_examination`). Without a test all exchanges are looked at, of those that are equal
in all fields one: that costs little for a field with few different values, as `request.acks`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

from dissector.core.finding import Finding, Severity
from dissector.exchange.message_question import NumberTest
from dissector.findings.explanation import Explanation
from dissector.findings.framework.read_fields import ReadFields


class MessageDetector(ABC):
    """Finds one kind of finding, in exchanges with a request. It keeps no state."""

    explanation: ClassVar[Explanation]
    apis: ClassVar[frozenset[int]] = frozenset()
    """The APIs whose exchanges it looks at; empty for all."""
    reads: ClassVar[Mapping[str, NumberTest | None]]
    """The names of the fields that it reads, with their tests."""

    @abstractmethod
    def find(self, fields: ReadFields) -> Iterator[Finding]:
        """Yield the findings of an exchange. It may be one that no test found suspect."""

    def finding(self, message: str, path: str = "", severity: Severity | None = None) -> Finding:
        """Return a finding; `severity` if it is not that of the explanation."""
        return Finding(self.explanation.code, severity or self.explanation.severity, message, path)
