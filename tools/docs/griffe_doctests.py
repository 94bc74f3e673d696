"""What griffe calls for each object that mkdocstrings shows: examples in docstrings become blocks of code."""

import re
from typing import Any, Final

from griffe import Extension, Object

_EXAMPLE: Final = re.compile(r"^>>> .*(?:\n(?!$).*)*", re.MULTILINE)


class Doctests(Extension):
    """Puts a fence around each example."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Change the docstring of an object that has one."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """Return a docstring with its examples between fences."""
    return _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
