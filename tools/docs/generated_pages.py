"""All pages that are made from the program itself. Each is a module here with a function of no arguments."""

from collections.abc import Callable
from typing import Final

from tools.docs import command_line, errors, findings, keys, python_api, row_fields, rules

PAGES: Final[dict[str, Callable[[], str]]] = {
    "reference/findings.md": findings.page,
    "reference/keys.md": keys.page,
    "reference/command-line.md": command_line.page,
    "reference/row-fields.md": row_fields.page,
    "reference/rules.md": rules.page,
    "reference/errors.md": errors.page,
    "reference/python.md": python_api.page,
}
"""By their places on the site."""
