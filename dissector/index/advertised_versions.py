"""What servers offer: to each connection that asked, and so to those that did not ask."""

from collections.abc import Callable, Mapping
from typing import Final

from dissector.index.conversation_state import ConversationState
from dissector.index.shared_state import Known, LearnedNames, Offer

NO_OFFER: Final[Offer] = {}


class AdvertisedVersions:
    """By connection and by server; of what a server said to several, that to the connection which began first holds."""

    def __init__(
        self, knowledge: ConversationState, server: Callable[[int], str], first_packet: Callable[[int], int]
    ) -> None:
        self._knowledge = knowledge
        self._server = server
        """The server's end of a connection, `host:port`."""
        self._first_packet = first_packet
        self._generation = -1
        self._servers = LearnedNames()
        self._taught: Known = {}

    def take(self, taught: Known) -> None:
        """What others have learned, by server."""
        self._taught, self._generation = taught, -1

    def keep(self, generation: int) -> None:
        """What each server said stays known, whatever is forgotten of connections."""
        self.take(self.known(generation))

    def of(self, connection: int, generation: int) -> Offer:
        """The versions that the server of a connection said it has, there or elsewhere, by API key. The knowledge has
        learned up to `generation`."""
        return self._knowledge.offered(connection) or self.servers(generation).get(self._server(connection), NO_OFFER)

    def servers(self, generation: int) -> Mapping[str, Offer]:
        """What each server said."""
        return self._learned(generation).values

    def known(self, generation: int) -> Known:
        """The same, with the packets."""
        return self._learned(generation).known

    def _learned(self, generation: int) -> LearnedNames:
        if generation != self._generation:
            self._generation = generation
            self._servers = LearnedNames(dict(self._taught))
            for connection, offer in self._knowledge.offers():
                self._servers.learn(self._server(connection), offer, self._first_packet(connection))
        return self._servers
