"""``--response API:VERSION``: what a response answers whose request is not in the input."""

from dissector.capture import CaptureError
from dissector.protocol.schema.loader import api_named


def asked(words: str | None) -> tuple[int, int] | None:
    """API key and version. Raises `CaptureError` for what is none."""
    if words is None:
        return None
    name, _, number = words.partition(":")
    known = api_named(name)
    if known is None:
        raise CaptureError(f"--response {words}: no API is called {name!r}")
    if not number.isascii() or not number.isdecimal() or not known.versions.contains(int(number)):
        raise CaptureError(f"--response {words}: {known.name} has versions {known.versions}")
    return known.key, int(number)
