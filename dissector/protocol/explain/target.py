"""Finds what to explain: an API by name, key or alias, or a message by name.

Case, underscores and hyphens don't matter: ``fetch``, ``offset_commit``, ``FETCHREQUEST`` and ``1`` are all found.
"""

from dataclasses import dataclass

from dissector.protocol.schema.index import PAIRED_TYPES
from dissector.protocol.schema.loader import api, apis, entries, message
from dissector.protocol.schema.model import Api, MessageSchema


class UnknownTargetError(Exception):
    """There is no API, message or version of this name. The text is one line."""


@dataclass(frozen=True, slots=True)
class ExplainTarget:
    """An API with its two messages, or one message; `api` is None for a message of no API."""

    name: str
    api: Api | None
    messages: tuple[MessageSchema, ...]

    @property
    def newest_stable(self) -> int:
        """The newest version that can no longer change, or else the newest of all."""
        first = self.messages[0]
        high = first.valid_versions.high
        unstable = self.api.unstable_versions if self.api else first.unstable_versions
        return high - 1 if unstable.contains(high) and high > first.valid_versions.low else high

    def version(self, text: str | None) -> int:
        """Parse a version (``12``, ``v12``); None is the newest stable one. Raises `UnknownTargetError`."""
        if text is None:
            return self.newest_stable
        valid = self.messages[0].valid_versions
        digits = text.lower().removeprefix("v")
        if not (digits.isascii() and digits.isdigit() and valid.contains(int(digits[:6]))):
            raise UnknownTargetError(f"{self.name} has no version {text}; it has {valid}")
        return int(digits)


def find_target(word: str) -> ExplainTarget:
    """Return the target called `word`. Raises `UnknownTargetError`."""
    if word.isascii() and word.isdigit():
        found = api(int(word[:6]))
        if found is None:
            raise UnknownTargetError(f"no API has the key {word}; keys are {_keys()}")
        return _of_api(found)
    subject = _names().get(normalized(word))
    if subject is None:
        raise UnknownTargetError(
            f"nothing is called {word!r}; the names are those of Kafka's protocol page, such as Fetch or FetchRequest"
        )
    return _of_api(subject) if isinstance(subject, Api) else _of_message(subject)


def _of_api(found: Api) -> ExplainTarget:
    return ExplainTarget(found.name, found, (message(found.request), message(found.response)))


def _of_message(name: str) -> ExplainTarget:
    found = message(name)
    of_api = api(found.api_key) if found.type in PAIRED_TYPES and found.api_key is not None else None
    return ExplainTarget(name, of_api, (found,))


def _names() -> dict[str, Api | str]:
    """Return all targets by normalized name; the name of an API wins over aliases of others."""
    found: dict[str, Api | str] = {}
    for each in apis():
        for alias in each.aliases:
            found[normalized(alias)] = each
    for entry in entries():
        for name in (*entry.aliases, entry.name):
            found[normalized(name)] = entry.name
    return found | {normalized(each.name): each for each in apis()}


def target_names() -> dict[str, str]:
    """Return the names of all targets by their normalized names, which include aliases."""
    return {name: each.name if isinstance(each, Api) else each for name, each in _names().items()}


def normalized(name: str) -> str:
    """Return a name as it is looked for: without case, underscores and hyphens."""
    return name.lower().replace("_", "").replace("-", "")


def _keys() -> str:
    keys = [each.key for each in apis()]
    missing = [str(key) for key in range(keys[0], keys[-1]) if key not in keys]
    return f"{keys[0]}-{keys[-1]}" + (f" without {', '.join(missing)}" if missing else "")
