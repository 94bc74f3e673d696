"""What a coordinator says of its groups: the lines of its log at INFO that tell who joined, who was removed, and why.

A recording has them beside it as truth (`NAME.group.log`), one line each, without the logger's name.
"""

import re
from pathlib import Path

LINE = re.compile(r"(?:GroupMetadataManager|GroupCoordinator|GroupCoordinatorShard) - (?:\[[^]]*\] ?)*(?P<words>.*)")
SAYS = re.compile(r"rebalance|Stabilized|Assignment received|member|Member|epoch", re.IGNORECASE)


def write(path: Path, logged: list[str]) -> None:
    """Write the lines about groups, in the order of the log."""
    words = [found["words"] for line in logged if (found := LINE.search(line)) and SAYS.search(found["words"])]
    path.write_text("".join(f"{each}\n" for each in words))
