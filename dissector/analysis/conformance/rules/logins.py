"""Rules on logging in with SASL."""

from collections.abc import Iterator
from typing import Final

from dissector.analysis.conformance.events import MessageEvent
from dissector.analysis.conformance.rule import RuleBook, RuleMemory, Verdict
from dissector.protocol.schema.error_codes import ErrorCode

RULES: Final = RuleBook()
_LOGIN: Final = frozenset({"ApiVersions", "SaslHandshake", "SaslAuthenticate"})
_SASL: Final = frozenset({"SaslHandshake", "SaslAuthenticate"})


@RULES.memory("sasl-handshake-first", "KIP-43, KIP-152", _SASL)
class HandshakeFirst(RuleMemory):
    """SaslAuthenticate follows a SaslHandshake that succeeded."""

    def __init__(self) -> None:
        self._accepted: dict[int, bool] = {}

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.api == "SaslAuthenticate":
            accepted = self._accepted.get(event.connection)
            words = "the handshake was refused" if accepted is False else "there was no handshake"
            yield Verdict(event, bool(accepted), "", words)

    def response(self, event: MessageEvent) -> None:
        if event.api == "SaslHandshake":
            self._accepted[event.connection] = event.error_code == ErrorCode.NONE


@RULES.memory("request-during-login", "KIP-43; Kafka's SaslServerAuthenticator")
class NothingDuringLogin(RuleMemory):
    """until it is logged in, a client sends only ApiVersions and SASL requests."""

    def __init__(self) -> None:
        self._logging_in: dict[int, bool] = {}

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.api == "SaslHandshake":
            self._logging_in.setdefault(event.connection, event.version >= 1)  # the end of v0 is no message of Kafka's
        elif self._logging_in.get(event.connection):
            yield Verdict(event, event.api in _LOGIN, "", f"{event.api} while the login goes on")

    def response(self, event: MessageEvent) -> None:
        if event.api == "SaslAuthenticate" and event.error_code == ErrorCode.NONE:
            self._logging_in[event.connection] = False  # several steps: a request after the first is not blamed


@RULES.memory("request-after-refused-login", "KIP-152")
class RefusedLogin(RuleMemory):
    """after a refused login the client sends nothing more on the connection."""

    def __init__(self) -> None:
        self._refused: set[int] = set()

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.connection in self._refused:
            yield Verdict(event, False, "", f"{event.api} after SASL_AUTHENTICATION_FAILED")

    def response(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.api == "SaslAuthenticate":
            if event.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED:
                self._refused.add(event.connection)
            yield Verdict(event, True, "", "")


@RULES.memory("sasl-session-lifetime", "KIP-368")
class SessionLifetime(RuleMemory):
    """a session with a lifetime is authenticated again before it ends."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        end = self._ends.get(event.connection)
        if end is not None and event.api not in _LOGIN:
            yield Verdict(event, event.time_ns <= end, "", f"{event.api} after the session's lifetime")

    def response(self, event: MessageEvent) -> None:
        lifetime = event.body.get("session_lifetime_ms", 0)
        if event.api == "SaslAuthenticate" and event.error_code == ErrorCode.NONE and lifetime > 0:
            self._ends[event.connection] = event.time_ns + lifetime * 1_000_000
