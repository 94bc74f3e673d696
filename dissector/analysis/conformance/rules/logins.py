"""Rules on logging in with SASL."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from dissector.analysis.conformance.declared_fields import is_one_of
from dissector.analysis.conformance.events import MessageEvent
from dissector.analysis.conformance.message_columns import MessageColumns
from dissector.analysis.conformance.proving import NOTHING, latest, since, unless
from dissector.analysis.conformance.rule import Proof, RuleBook, RuleMemory, Verdict
from dissector.core.arrays import Bool, Int64
from dissector.findings.framework.read_fields import RESPONSE
from dissector.protocol.schema.error_codes import ErrorCode

RULES: Final = RuleBook()
_LOGIN: Final = frozenset({"ApiVersions", "SaslHandshake", "SaslAuthenticate"})
_SASL: Final = frozenset({"SaslHandshake", "SaslAuthenticate"})
LONGEST_MS: Final = 1 << 40
"""A lifetime that columns can hold in nanoseconds: what comes later than 35 years is looked at."""


@RULES.memory("sasl-handshake-first", "KIP-43, KIP-152", _SASL)
class HandshakeFirst(RuleMemory):
    """SaslAuthenticate follows a SaslHandshake that succeeded."""

    def __init__(self) -> None:
        self._accepted: dict[int, bool] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """A token follows the last answer to a handshake, which was accepted."""
        error = columns.numbers({"SaslHandshake"}, ("error_code",), side=RESPONSE)["error_code"]
        before = latest(columns.connection, columns.is_response & error.is_there)
        tokens = columns.is_request & columns.messages_of(columns.of({"SaslAuthenticate"}))
        is_accepted = (before != NOTHING) & (error.values[before] == ErrorCode.NONE)
        is_accepted &= columns.is_request_readable[columns.exchange]
        found = unless(tokens.astype(np.int64), tokens & ~is_accepted, columns.connection)
        return found._replace(open=found.open & columns.messages_of(columns.of(apis)))

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

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """From the first handshake of a connection to the first login that succeeds."""
        handshakes = columns.of({"SaslHandshake"})
        begins = since(columns, handshakes, apis).open
        is_done = columns.tested({"SaslAuthenticate"}, {"response.error_code": is_one_of(ErrorCode.NONE)})
        ends = columns.is_response & columns.messages_of(is_done)
        logs_in = begins & (latest(columns.connection, ends) == NOTHING)
        logs_in &= ~np.isin(columns.connection, _raw_logins(columns, handshakes))
        sent = logs_in & columns.is_request & ~columns.messages_of(handshakes)
        found = unless(sent.astype(np.int64), sent & columns.messages_of(~columns.of(_LOGIN)), columns.connection)
        return found._replace(open=found.open & logs_in)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        if event.api == "SaslHandshake":
            self._logging_in.setdefault(event.connection, event.version >= 1)  # the end of v0 is no message of Kafka's
        elif self._logging_in.get(event.connection):
            yield Verdict(event, event.api in _LOGIN, "", f"{event.api} while the login goes on")

    def response(self, event: MessageEvent) -> None:
        if event.api == "SaslAuthenticate" and event.error_code == ErrorCode.NONE:
            self._logging_in[event.connection] = False  # several steps: a request after the first is not blamed


def _raw_logins(columns: MessageColumns, handshakes: Bool) -> Int64:
    """Connections whose first handshake has version 0: the login that follows has no messages of Kafka's."""
    found = columns.found.where(handshakes)
    connections, first = np.unique(found.connection, return_index=True)
    raw: Int64 = connections[found.version[first] < 1]
    return raw


@RULES.memory("request-after-refused-login", "KIP-152")
class RefusedLogin(RuleMemory):
    """after a failed login, the client sends nothing more on the connection."""

    def __init__(self) -> None:
        self._refused: set[int] = set()

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """All answers to logins keep it, but for what follows one that is refused."""
        logins = {"SaslAuthenticate"}
        refused = is_one_of(ErrorCode.SASL_AUTHENTICATION_FAILED)
        after = since(columns, columns.tested(logins, {"response.error_code": refused}), apis)
        answers = columns.is_response & columns.messages_of(columns.of(logins))
        return Proof(after.open, answers.astype(np.int64))

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
    """a session with a lifetime is reauthenticated before it ends."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}

    @classmethod
    def proof(cls, columns: MessageColumns, apis: frozenset[str]) -> Proof:
        """A request comes before the end of the last lifetime that the broker gave."""
        found = columns.numbers({"SaslAuthenticate"}, ("session_lifetime_ms", "error_code"), side=RESPONSE)
        lifetime, error = found["session_lifetime_ms"], found["error_code"]
        lasts = columns.is_response & lifetime.is_there & (error.values == ErrorCode.NONE) & (lifetime.values > 0)
        before = latest(columns.connection, lasts)
        limit_ns = np.minimum(lifetime.values[before], LONGEST_MS) * 1_000_000
        sent = columns.is_request & (before != NOTHING) & columns.messages_of(~columns.of(_LOGIN))
        is_late = sent & (columns.time_ns - columns.time_ns[before] > limit_ns)
        is_odd = columns.is_response & columns.messages_of(columns.of({"SaslAuthenticate"}) & ~columns.is_readable)
        return unless(sent.astype(np.int64), is_late | is_odd, columns.connection)

    def request(self, event: MessageEvent) -> Iterator[Verdict]:
        end = self._ends.get(event.connection)
        if end is not None and event.api not in _LOGIN:
            yield Verdict(event, event.time_ns <= end, "", f"{event.api} after the session's lifetime")

    def response(self, event: MessageEvent) -> None:
        lifetime = event.body.get("session_lifetime_ms", 0)
        if event.api == "SaslAuthenticate" and event.error_code == ErrorCode.NONE and lifetime > 0:
            self._ends[event.connection] = event.time_ns + lifetime * 1_000_000
