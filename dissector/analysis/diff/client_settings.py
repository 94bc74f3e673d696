"""The client setting that controls a field, where there is a well-known one.

`client_settings.json` is maintained by hand. Its `sources` name where each family's settings were read; tests check
them against the installed clients.
"""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import orjson

from dissector.exchange.client_families import family


def setting(place: str, clients: Iterable[str]) -> tuple[str, str] | None:
    """Return the family of these clients, and its name for the setting of a place: API, part and path without labels
    (``Fetch.request.max_wait_ms``), or another property of an API (``Heartbeat.interval``)."""
    known = settings().get(place, {})
    names = (family(client) for client in clients)
    return next(((name, known[name]) for name in names if name in known), None)


@cache
def settings() -> dict[str, dict[str, str]]:
    """Return all known settings by place, then by family."""
    raw = orjson.loads(files(__package__).joinpath("client_settings.json").read_bytes())
    found: dict[str, dict[str, str]] = raw["settings"]
    return found
