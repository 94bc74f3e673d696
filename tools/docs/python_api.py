"""The page of the Python API: mkdocstrings fills in each public name, from its docstring."""

from typing import Final

import dissector

_HEAD: Final = """# Python

All names that `import dissector` promises, and no others. They are typed (`py.typed`); tests run their examples,
in which `capture` is `dissector.open("pcaps/java.pcapng")`. Times are integers, nanoseconds since 1970 UTC; sizes are
bytes. How to begin: [Python](../python.md).
"""


def page() -> str:
    """All of it."""
    return "\n".join([_HEAD, *(directive(name) for name in dissector.__all__ if name != "__version__")])


def directive(name: str) -> str:
    """Return what makes mkdocstrings render a public name."""
    target = getattr(dissector, name)
    path = target.__name__ if name == "primitives" else f"{target.__module__}.{target.__qualname__}"
    return f"\n::: {path}\n    options:\n      heading: {name}\n      toc_label: {name}\n"
