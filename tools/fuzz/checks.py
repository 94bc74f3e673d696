"""What holds of every input, however damaged. `check` raises where it does not."""

from tools.fuzz.capture_checks import check_captures
from tools.fuzz.case import Case
from tools.fuzz.jars import check_jar
from tools.fuzz.message_checks import check_frame
from tools.fuzz.shrinking import check_shrinking


def check(case: Case) -> None:
    """All of it, for one case."""
    if case.side in ("capture", "captures"):
        check_captures(case)
    elif case.side == "shrinking":
        check_shrinking(case)
    elif case.side == "jar":
        check_jar(case.data)
    else:
        check_frame(case)
