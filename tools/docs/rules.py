"""The page of the rules that `kdissect check` holds clients and brokers to."""

from typing import Final

from dissector.analysis.conformance import RULES
from tools.docs.markdown import code, table

_HEAD: Final = """# Rules of the protocol

`kdissect check FILE…` holds clients and brokers to these rules and says which exchange, field and bytes break one.
Exit code 0: all are kept; 1: one is broken. `--ignore CODE,CODE` leaves some out; `kdissect explain CODE` prints one.
"""


def page() -> str:
    """All of it."""
    rows = [(code(each.code), each.side.value, each.title, each.source) for each in RULES]
    return f"{_HEAD}\n{table(('rule', 'whose', 'what is required', 'source'), *rows)}"
