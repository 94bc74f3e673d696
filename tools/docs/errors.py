"""The page of Kafka's errors: what each asks of a client."""

from typing import Final

from dissector.protocol.schema.errors import known_errors
from tools.docs.markdown import table

_HEAD: Final = """# Kafka's errors

The error codes of Kafka's protocol, and what a client does about each. `kdissect explain NAME` prints the same;
`error == NAME` is a filter; `error` alone matches any but `NONE`.
"""


def page() -> str:
    """All of it."""
    rows = [
        (each.code, f"`{each.name}`", "yes" if each.retriable else "", each.advice) for each in known_errors().values()
    ]
    return f"{_HEAD}\n{table(('code', 'name', 'retriable', 'what a client does'), *rows)}"
