"""What a finding means, for whoever meets it for the first time: one for each code that the program emits."""

from dataclasses import dataclass

from dissector.core.finding import Severity


@dataclass(frozen=True, slots=True)
class Explanation:
    """Plain words. `severity` is the gravest that the code is reported with."""

    code: str
    title: str
    severity: Severity
    what: str
    """What was seen."""
    why: str
    """How it comes about."""
    what_to_do: str
    """For who writes, configures or runs the client; settings by their names in Kafka's Java client, and librdkafka's
    where they differ."""
