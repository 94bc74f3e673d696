"""The versions that servers advertise in their ApiVersions responses: known for a connection that has such a response,
and for all other connections to the same server."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from dissector.core.arrays import Int64
from dissector.index.conversation_state import ConversationState
from dissector.index.shared_state import NO_VERSIONS, Learned, LearnedNames, VersionRanges

NOT_KNOWN: Final = (-1, NO_VERSIONS)


class AdvertisedVersions:
    """By connection and by server. Where a server sent different ones, those of the connection that began first count.

    `generation` is that of the index, up to which the conversation state is updated. What it has learned since the last
    look is added: a capture that grows for a day is not gone through again at each step.
    """

    def __init__(
        self,
        conversation_state: ConversationState,
        server: Callable[[int], str],
        servers: Callable[[Int64], tuple[list[str], Int64]],
        first_packet: Callable[[int], int],
    ) -> None:
        self._conversation_state = conversation_state
        self._server = server
        """The server's end of a connection, `host:port`."""
        self._servers_of = servers
        """The different ones of many connections, and for every connection which of them is its own."""
        self._first_packet = first_packet
        self._generation = -1
        self._servers = LearnedNames()

    def merge(self, known: Learned) -> None:
        """Add what was learned elsewhere, by server."""
        self._servers.merge(known)

    def retain(self, generation: int) -> None:
        """Get ready for a checkpoint: take what the conversation state has learned, before it forgets connections."""
        self._learned(generation)

    def of(self, connection: int, generation: int) -> VersionRanges:
        """The versions that the server of a connection advertised, on it or on others, by API key."""
        return self._conversation_state.versions.advertised(connection) or self.servers(generation).get(
            self._server(connection), NO_VERSIONS
        )

    def servers(self, generation: int) -> Mapping[str, VersionRanges]:
        """The versions that each server advertised."""
        return self._learned(generation).values

    def known(self, generation: int) -> Learned:
        """The same, with the packets."""
        return self._learned(generation).known

    def _learned(self, generation: int) -> LearnedNames:
        if generation != self._generation:
            self._generation = generation
            advertised = self._conversation_state.versions.take_advertised()
            servers, which = self._servers_of(np.array(list(advertised), np.int64))
            for (connection, versions), server in zip(advertised.items(), which.tolist(), strict=True):
                packet = self._first_packet(connection)
                if self._servers.known.get(servers[server], NOT_KNOWN)[0] == packet:
                    self._servers.forget(servers[server])  # the same connection, which asked again
                self._servers.learn(servers[server], versions, packet)
        return self._servers
