"""The page of the rules that `kdissect check` checks clients and brokers against."""

from typing import Final

from dissector.analysis.conformance import RULES
from tools.docs.markdown import code, table

_HEAD: Final = """# Rules of the protocol

`kdissect check FILE…` checks clients and brokers against these rules, and names the exchange, field and bytes of each
that is broken.
Exit code 0: none is broken; 1: one is. `--ignore CODE,CODE` leaves some out; `kdissect explain CODE` prints one.
"""


def page() -> str:
    """All of it."""
    rows = [(code(each.code), each.side.value, each.title, each.source) for each in RULES]
    return f"{_HEAD}\n{table(('rule', 'whose', 'what is required', 'source'), *rows)}"
