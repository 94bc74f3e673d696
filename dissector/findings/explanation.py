"""Explanations of findings for users: one for each code that the program emits."""

from dataclasses import dataclass

from dissector.core.finding import Severity


@dataclass(frozen=True, slots=True)
class Explanation:
    """Explanation of a code, in plain words. `severity` is the highest that the code is reported with."""

    code: str
    title: str
    severity: Severity
    what: str
    """What the capture shows."""
    why: str
    """The likely causes."""
    what_to_do: str
    """What to do, for those who write, configure or run the client. Settings have their names of Kafka's Java client,
    and of librdkafka if they differ."""
