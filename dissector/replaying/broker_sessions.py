"""Fetch sessions and share sessions where one recorded session becomes one with each broker (KIP-227, KIP-932).

A broker gets a session of its own with the first request that has partitions of it, and counts its requests from there.
What a session has asked for, a broker goes on sending: so each request goes to all that have one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dissector.core.addresses import BrokerAddress
from dissector.protocol.message import Values
from dissector.protocol.schema.api_keys import ApiKey

SHARING: Final = frozenset((ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE))
_LISTS: Final = ("topics", "forgotten_topics_data")
_LAST: Final = -1
"""The epoch of a request without a session, or of the last one of a session."""


@dataclass(slots=True)
class BrokerSessions:
    """Those of one recorded connection."""

    _epochs: dict[BrokerAddress, int] = field(default_factory=dict)
    """The epoch of the next request."""
    _ids: dict[BrokerAddress, int] = field(default_factory=dict)

    def parts(self, key: int, asked: Values, parts: Mapping[BrokerAddress, Values]) -> dict[BrokerAddress, Values]:
        """Return what each broker gets: its partitions, and its session."""
        name = "share_session_epoch" if key in SHARING else "session_epoch"
        epoch = asked.get(name)
        if not isinstance(epoch, int) or (key not in SHARING and key != ApiKey.FETCH):
            return dict(parts)
        if epoch == _LAST:
            found = self._to_all(asked, parts) if key in SHARING or asked.get("session_id") else dict(parts)
            made = {broker: self._with(key, broker, each, name, epoch) for broker, each in found.items()}
            self._epochs.clear()
            self._ids.clear()
            return made
        if epoch == 0 and key not in SHARING:
            self._epochs.clear()
            self._ids.clear()
        found = dict(parts) if epoch == 0 else self._to_all(asked, parts)
        made = {}
        for broker, each in found.items():
            own = 0 if epoch == 0 else self._epochs.get(broker, 0)
            made[broker] = self._with(key, broker, each, name, own)
            self._epochs[broker] = own + 1
        return made

    def learn(self, key: int, broker: BrokerAddress, answered: Values) -> None:
        """Take the id that a broker gave a session; without one it has none."""
        if key != ApiKey.FETCH or "session_id" not in answered:
            return
        if answered["session_id"] and not answered.get("error_code"):
            self._ids[broker] = answered["session_id"]
        else:
            self._ids.pop(broker, None)
            self._epochs.pop(broker, None)

    def _to_all(self, asked: Values, parts: Mapping[BrokerAddress, Values]) -> dict[BrokerAddress, Values]:
        """Add brokers that have a session and of whose partitions the request says nothing; leave out those of which it
        names nothing, and that have none."""
        empty: Values = {name: [] for name in _LISTS if name in asked}
        nothing = {**asked, **empty}
        own = {broker: each for broker, each in parts.items()
               if broker in self._epochs or any(each.get(name) for name in _LISTS)}  # fmt: skip
        return dict.fromkeys(self._epochs, nothing) | own or dict(parts)

    def _with(self, key: int, broker: BrokerAddress, asked: Values, name: str, epoch: int) -> Values:
        made = {**asked, name: epoch}
        if key == ApiKey.FETCH:
            made["session_id"] = self._ids.get(broker, 0) if epoch else 0
        return made
