"""Versions: what a broker said it has, and what clients use."""

from typing import ClassVar

import numpy as np

from dissector.analysis.findings.explanation import Explanation
from dissector.analysis.findings.finder import Around, BodyFinder, RowFinder
from dissector.analysis.findings.found import Case, Found
from dissector.analysis.findings.recurring import Recent
from dissector.analysis.findings.rows import Rows
from dissector.analysis.findings.seen import Seen
from dissector.findings import Severity
from dissector.protocol.message import API_VERSIONS, UNSUPPORTED_VERSION
from dissector.session.lookup import api_name


class VersionNotOffered(RowFinder):
    """A request that the broker said it could not read."""

    explanation: ClassVar = Explanation(
        "version-not-offered",
        "A version that the broker did not offer",
        Severity.ERROR,
        "The request has a version outside of the range that this broker named in its ApiVersions response, or an API "
        "that is not in it.",
        "The client does not look at ApiVersions, keeps an answer of another broker (an older one of the same cluster, "
        "in the middle of an upgrade), or has its versions fixed by a setting (api.version.request, "
        "broker.version.fallback, api_version).",
        "Use the highest version that both sides have, for each broker by itself. Brokers close the connection on what "
        "they can't read: of all APIs ApiVersions alone is answered, with UNSUPPORTED_VERSION.",
    )

    def __init__(self, found: Found, around: Around) -> None:
        super().__init__(found, around)
        self._told: Recent[tuple[str, int, int], list[Case]] = Recent(list)

    def take(self, rows: Rows) -> None:
        """Once a client, API and version."""
        asked = rows.asked
        asked = asked.where(asked.api_key != API_VERSIONS)
        if not len(asked.row):
            return
        pairs = asked.connection << 32 | (asked.api_key & 0xFFFF) << 16 | (asked.version & 0xFFFF)
        some = asked.where(np.sort(np.unique(pairs, return_index=True)[1]))
        columns = (some.row, some.connection, some.api_key, some.version)
        for row, connection, key, version in zip(*(column.tolist() for column in columns), strict=True):
            if not self.around.is_offered(connection, key, version):
                told = self._told.of((self.around.client(connection), key, version))
                if not told:
                    words = f"{api_name(key)} v{version}, where the broker {self._offer(connection, key)}"
                    told.append(self.tell(row, words, "request.header.request_api_version"))

    def _offer(self, connection: int, key: int) -> str:
        low, high = self.around.offered(connection).get(key, (0, -1))
        return f"offered v{low}–v{high}" if low <= high else "offered no version of it"


class VersionSteppedDown(BodyFinder):
    """A client that asks again, lower."""

    explanation: ClassVar = Explanation(
        "version-stepped-down",
        "The client asks again in a lower version",
        Severity.NOTE,
        "ApiVersions was refused with UNSUPPORTED_VERSION, and the client asked again in one that the broker has.",
        "The client is newer than the broker: it begins with the newest version that it knows. This is how KIP-511 "
        "means it; it costs a round trip a connection.",
        "Nothing, if the broker is older on purpose. Else upgrade it. A client that asks high on every connection "
        "could remember what the broker said.",
    )
    apis: ClassVar = frozenset((API_VERSIONS,))

    def __init__(self, found: Found, around: Around) -> None:
        super().__init__(found, around)
        self._refused: Recent[int, list[int]] = Recent(list)
        """By connection: the version that was refused."""

    def look(self, seen: Seen) -> None:
        """Once a client."""
        refused = self._refused.of(seen.connection)
        if UNSUPPORTED_VERSION in seen.errors:
            refused[:] = [seen.version]
        elif refused and seen.version < refused[0]:
            words = f"asked again with v{seen.version}, as v{refused[0]} was refused"
            refused.clear()
            client = self.around.client(seen.connection)
            self.again(client, seen.row, seen.asked_ns, words, "request.header.request_api_version", "connections")
