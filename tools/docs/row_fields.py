"""The page of row fields: each with its names, type, unit, and where it is."""

from typing import Final

from dissector.exchange.row_fields import row_fields
from tools.docs.markdown import code, table

_HEAD: Final = """# Row fields

What a row has, by name: for filters, `--fields`, `stats --by`, the columns and the order of the list (`C`, `z`),
JSON and tables. Fields of messages have their path instead: `request.topics.name`.
"""


def page() -> str:
    """All of it."""
    rows = [
        (
            ", ".join(map(code, each.names)), each.description, each.type, each.type.unit, each.heading,
            code(each.json_key), ", ".join(map(code, each.table_columns)),
        )
        for each in row_fields()
    ]  # fmt: skip
    return f"{_HEAD}\n{table(('names', 'what', 'type', 'unit', 'column', 'JSON', 'tables'), *rows)}"
