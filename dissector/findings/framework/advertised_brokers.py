"""The brokers that Metadata responses name, read by keys of their addresses: of responses that are equal in these, one
is decoded. Brokers answer with the same list again and again, whatever topics are asked for.

Invariant: the brokers of a response are those of its body, decoded by itself (a property test); none if it can't be
read.
"""

from typing import Final, NamedTuple, cast

from dissector.bulk.body_columns import BodyColumns
from dissector.bulk.field_keys import FieldKeys
from dissector.core.arrays import Int64
from dissector.core.store import Store
from dissector.core.text import endpoint_name
from dissector.findings.framework.decoded_exchange import elements, response_body
from dissector.index.indexer import Indexer
from dissector.protocol.codec.program import ColumnPlan

MOST_LISTS: Final = 1 << 12
_BROKERS, _HOST, _PORT = "brokers", "host", "port"
_PATHS: Final = {("body", _BROKERS), ("body", _BROKERS, _HOST), ("body", _BROKERS, _PORT)}
_CAREFUL: Final = 0


class Broker(NamedTuple):
    """A broker as Metadata names it."""

    host: str
    address: str
    """Host and port."""


Brokers = tuple[Broker, ...]


class AdvertisedBrokers:
    """Of one capture, which may still grow. What a checkpoint has of it are its arguments."""

    def __init__(self, index: Indexer, store: Store) -> None:
        self._arguments = index, store
        self._index = index
        self._forget()

    def __getstate__(self) -> tuple[Indexer, Store]:
        return self._arguments

    def __setstate__(self, arguments: tuple[Indexer, Store]) -> None:
        AdvertisedBrokers.__init__(self, *arguments)

    def of(self, rows: Int64) -> list[Brokers]:
        """Return the brokers in the responses to the Metadata requests of these rows of the index, ascending."""
        if len(self._known) > MOST_LISTS:
            self._forget()
        found = []
        for row, key in zip(rows.tolist(), self._keys.numbers(rows).tolist(), strict=True):
            brokers = self._known.get(key)
            if brokers is None:
                brokers = self._decoded(row)
                if key != _CAREFUL:
                    self._known[key] = brokers
            found.append(brokers)
        return found

    def _forget(self) -> None:
        bodies = BodyColumns(*self._arguments, show_secrets=True)  # Metadata has no secrets
        self._keys = FieldKeys(bodies, _is_address, is_request=False)
        self._known: dict[int, Brokers] = {}
        """By key."""

    def _decoded(self, row: int) -> Brokers:
        table = self._index.table
        data, contiguous = self._index.frames.read(int(table.response.values[row]))
        body, _ = response_body(int(table.api_key.values[row]), int(table.version.values[row]), data, contiguous)
        ends = [(str(each.get(_HOST)), cast(int, each.get(_PORT, 0))) for each in elements(body, _BROKERS)]
        return tuple(Broker(host, endpoint_name(host, port)) for host, port in ends)


def _is_address(_api_key: int, column: ColumnPlan) -> bool:
    return column.path in _PATHS
