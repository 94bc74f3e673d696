"""``--response API:VERSION``: API and version of responses whose request is missing."""

from dissector.cli.errors import UsageError
from dissector.protocol.schema.loader import api_named


def parse_response(words: str | None) -> tuple[int, int] | None:
    """API key and version. Raises `UsageError`."""
    if words is None:
        return None
    name, _, number = words.partition(":")
    known = api_named(name)
    if known is None:
        raise UsageError(f"--response {words}: no API is called {name!r}")
    if not number.isascii() or not number.isdecimal() or not known.versions.contains(int(number)):
        raise UsageError(f"--response {words}: {known.name} has versions {known.versions}")
    return known.key, int(number)
