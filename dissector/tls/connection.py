"""What the two ends of a TLS connection agreed on, and the keys that follow from it and from a key log.

Both directions share it: neither can be read on without what the other one said. Hellos are counted, as a renegotiation
has others: the n-th ChangeCipherSpec of a direction goes with the n-th hellos of the connection.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from dissector.core.arrays import Int64
from dissector.tls.certificates import first_certificate, first_compressed_certificate
from dissector.tls.exchange_estimate import ExchangeEstimate
from dissector.tls.handshake import (
    PRE_SHARED_KEY,
    ClientHello,
    HandshakeType,
    ServerHello,
    application_protocol,
    parse_client_hello,
    parse_extensions,
    parse_server_hello,
)  # fmt: skip
from dissector.tls.key_derivation import KeyExchanges
from dissector.tls.key_log import KeyLog
from dissector.tls.record_parts import TLS_1_3, Agreement
from dissector.tls.session import TlsSession, TlsState
from dissector.tls.suites import SUITES, CipherSuite, suites_of_secret

if TYPE_CHECKING:  # imported on use: without keys nothing is decrypted
    from dissector.tls.record_ciphers import RecordCipher

MOST_ALERTS: Final = 8
MOST_HELLOS: Final = 64
"""Hellos of a side that are kept. A connection with more renegotiations is not decrypted further."""


class Side(IntEnum):
    """An end of a TLS connection."""

    CLIENT = 0
    SERVER = 1


class KeyPhase(IntEnum):
    """Which secret protects the records of a direction in TLS 1.3, in the order of their use (RFC 8446, 7.1)."""

    EARLY = 0
    HANDSHAKE = 1
    TRAFFIC = 2


class Epoch(NamedTuple):
    """The keys of a direction, by where they come from."""

    phase: KeyPhase | None
    """None before TLS 1.3."""
    number: int
    """Of the key update; before TLS 1.3 that of the ChangeCipherSpec, from 0."""


class Alert(NamedTuple):
    """An alert, by its number."""

    number: int
    direction: int
    is_encrypted: bool


class TlsConnection:
    """The handshakes of one connection."""

    def __init__(self, keys: KeyLog) -> None:
        self._keys = keys
        self.client: int | None = None
        """The client's direction, once it is known."""
        self.client_hellos: list[ClientHello] = []
        """The newest one replaces that before it where the random is the same: after a HelloRetryRequest."""
        self.server_hellos: list[ServerHello] = []
        self.is_opened = False
        """Whether a record was decrypted."""
        self.may_get_secrets = False
        """Whether the key log may get more secrets of this connection."""
        self.alerts: list[Alert] = []
        """The first ones of both ends, encrypted or not."""
        self.is_late = False
        """Whether its hellos were not captured: its keys have to be found by its records."""
        self._place: tuple[bytes, CipherSuite] | None = None
        """Client random and suite of a late one, once they are found."""
        self.tried_secrets = 0
        """Secrets of the key log that were tried to find them."""
        self.key_exchanges = KeyExchanges()
        self._estimate = ExchangeEstimate()
        self._certificates: dict[Side, bytes] = {}
        self._application_protocol: str | None = None
        """As a server of TLS 1.3 says it."""
        self._session: tuple[TlsState, TlsSession] | None = None
        """The newest one, with the state that it was made for."""

    @property
    def version(self) -> int | None:
        """The version that was agreed on."""
        if self.server_hellos:
            return self.server_hellos[-1].version
        return TLS_1_3 if self._place is not None else None

    @property
    def is_tls_1_3(self) -> bool:
        """Whether it is TLS 1.3, as far as is known: also where the ServerHello is missing, but secrets are there."""
        if self.version is not None:
            return self.version == TLS_1_3
        return self.is_late or any("TRAFFIC" in label for label in self._keys.secrets(self.client_random or b""))

    @property
    def suite(self) -> CipherSuite | None:
        """The suite that was agreed on; None if it is not known, or can't be decrypted."""
        if self.server_hellos:
            return SUITES.get(self.server_hellos[-1].suite)
        return None if self._place is None else self._place[1]

    def agreements(self) -> Iterator[Agreement]:
        """Yield what the peers agreed on, as far as it is known: each renegotiation makes another."""
        for hello in self.server_hellos:
            if (suite := SUITES.get(hello.suite)) is not None:
                yield Agreement(hello.version, suite, hello.encrypt_then_mac)
        if self._place is not None:
            yield Agreement(TLS_1_3, self._place[1], encrypt_then_mac=False)

    @property
    def client_random(self) -> bytes | None:
        """The random that its secrets are found by, once it is known."""
        if self.client_hellos:
            return self.client_hellos[-1].random
        return None if self._place is None else self._place[0]

    @property
    def is_found(self) -> bool:
        """Whether its keys were found without its hellos."""
        return self._place is not None

    def lose_hello(self) -> bool:
        """Take note that bytes before the first encrypted record are missing; return whether a hello is with them, by
        which keys would be found."""
        if not self.client_hellos and self._keys.traffic_secrets():
            self.is_late = True
        return self.is_late

    def take_place(self, direction: int, side: Side, client_random: bytes, suite: CipherSuite) -> None:
        """Take note of which connection this is, as a record of a direction showed without hellos."""
        self.client, self._session = direction ^ side, None
        self._place = client_random, suite
        self.is_opened = True

    def add_message(self, direction: int, kind: int, body: bytes) -> None:
        """Take note of a handshake message of this type."""
        self._note_exchange(direction, kind, body)
        match kind:
            case HandshakeType.CLIENT_HELLO if (client_hello := parse_client_hello(body)) is not None:
                self._add_client_hello(direction, client_hello)
            case HandshakeType.SERVER_HELLO if (server_hello := parse_server_hello(body)) is not None:
                self._add_server_hello(direction, server_hello)
            case HandshakeType.ENCRYPTED_EXTENSIONS:
                self._application_protocol = application_protocol(parse_extensions(body))
                self._session = None
            case HandshakeType.CERTIFICATE:
                self._add_certificate(direction, first_certificate(body, has_context=self.is_tls_1_3))
            case HandshakeType.COMPRESSED_CERTIFICATE:
                self._add_certificate(direction, first_compressed_certificate(body))

    def _note_exchange(self, direction: int, kind: int, body: bytes) -> None:
        """Take note of what may be part of a key exchange before TLS 1.3."""
        side = self.side(direction)
        if kind in (HandshakeType.CLIENT_HELLO, HandshakeType.SERVER_HELLO):
            side = Side.CLIENT if kind == HandshakeType.CLIENT_HELLO else Side.SERVER
        if side is not None and not self.is_tls_1_3:
            self.key_exchanges.add(side, kind, body)
            self._complete_exchange()

    def _complete_exchange(self) -> None:
        if self.server_hellos:
            self.key_exchanges.complete(len(self.server_hellos) - 1, self.server_hellos[-1].version, self.suite)

    def _add_client_hello(self, direction: int, hello: ClientHello) -> None:
        """Take note of a ClientHello."""
        self.client, self._session, self.is_late = direction, None, False
        if self.client_hellos and self.client_hellos[-1].random == hello.random:
            self.client_hellos[-1] = hello
        elif len(self.client_hellos) < MOST_HELLOS:
            self.client_hellos.append(hello)

    def _add_server_hello(self, direction: int, hello: ServerHello) -> None:
        """Take note of a ServerHello, or of a HelloRetryRequest."""
        self.client, self._session = direction ^ 1, None
        if not hello.is_hello_retry and len(self.server_hellos) < MOST_HELLOS:
            self.server_hellos.append(hello)

    def _add_certificate(self, direction: int, certificate: bytes | None) -> None:
        """Take note of a certificate, in DER, if a message has one."""
        side = self.side(direction)
        if side is not None and certificate is not None:
            self._certificates[side] = certificate
            self._session = None

    def add_alert(self, alert: Alert) -> None:
        """Take note of an alert."""
        if len(self.alerts) < MOST_ALERTS:
            self.alerts.append(alert)

    @property
    def session(self) -> TlsSession:
        """What is known of the newest handshake."""
        state = self._state
        if self._session is None or self._session[0] is not state:
            self._session = state, self._made_session(state)
        session = self._session[1]
        is_counted = state is not TlsState.DECRYPTED and self.client is not None
        return session._replace(exchanges=self._estimate.exchanges) if is_counted else session

    def estimate(self, direction: Int64, records: Int64) -> None:
        """Count exchanges by records that stay encrypted: a number of them each time, of a direction, `(n,)`."""
        if self.client is not None:
            is_finished = self.version == TLS_1_3 and bool(self.client_hellos)
            self._estimate.add(direction == self.client, records, has_encrypted_finished=is_finished)

    @property
    def _state(self) -> TlsState:
        if self.is_opened:
            return TlsState.DECRYPTED
        return TlsState.FAILED if self.can_be_opened and self.is_agreed else TlsState.NO_KEYS

    def _made_session(self, state: TlsState) -> TlsSession:
        client = self.client_hellos[-1] if self.client_hellos else None
        server = self.server_hellos[-1] if self.server_hellos else None
        return TlsSession(
            state,
            self.version,
            server.suite if server is not None else None if self._place is None else self._place[1].number,
            None if client is None or server is None else _is_resumed(client, server, self._certificates),
            client,
            self._application_protocol or (None if server is None else application_protocol(server.extensions)),
            self._certificates.get(Side.CLIENT),
            self._certificates.get(Side.SERVER),
        )

    def side(self, direction: int) -> Side | None:
        """Which end sends a direction; None if it is not known."""
        return None if self.client is None else Side.CLIENT if direction == self.client else Side.SERVER

    @property
    def has_keys(self) -> bool:
        """Whether the key log has secrets of this connection."""
        random = self.client_random
        if random is None:
            return False
        if self._keys.secrets(random):
            return True
        return bool(self.server_hellos) and self._master_secret(len(self.server_hellos) - 1) is not None

    @property
    def can_be_opened(self) -> bool:
        """Whether the key log has the secrets that there will be. Programs write those of TLS 1.3 one after the other,
        and those of application data last: what comes before them is no failure yet."""
        if not self.has_keys:
            return False
        if not self.may_get_secrets or self.version not in (None, TLS_1_3):
            return True
        known = self._keys.secrets(self.client_random or b"")
        return all(any(label.startswith(f"{side.name}_TRAFFIC_SECRET_") for label in known) for side in Side)

    @property
    def is_agreed(self) -> bool:
        """Whether both hellos are known, by which keys are found."""
        return bool(self.client_hellos) and bool(self.server_hellos)

    def epochs_after(self, epoch: Epoch | None) -> list[Epoch]:
        """The epochs of TLS 1.3 that may follow one, the next first."""
        if epoch is None:
            return [Epoch(phase, 0) for phase in KeyPhase]
        if epoch.phase is KeyPhase.TRAFFIC:
            return [Epoch(KeyPhase.TRAFFIC, epoch.number + 1)]
        return [Epoch(phase, 0) for phase in KeyPhase if epoch.phase is not None and phase > epoch.phase]

    def is_ready(self, change: int) -> bool:
        """Whether both hellos are there that go with a ChangeCipherSpec, counted from 0."""
        return change < min(len(self.client_hellos), len(self.server_hellos))

    def ciphers(self, direction: int, epoch: Epoch) -> "list[RecordCipher]":
        """The ciphers that records of an epoch may have: none without keys, several where the suite is not known."""
        side = self.side(direction)
        if side is None or self.client_random is None:
            return []
        if epoch.phase is None:
            return self._cipher_of_change(side, epoch.number)
        return self._ciphers_of_phase(side, epoch.phase, epoch.number)

    def _ciphers_of_phase(self, side: Side, phase: KeyPhase, updates: int) -> "list[RecordCipher]":
        from dissector.tls.record_ciphers import Tls13Cipher

        secret, updates = self._secret(side, phase, updates)
        if secret is None:
            return []
        suites = suites_of_secret(secret) if self.version is None else [self.suite]
        ciphers: list[RecordCipher] = []
        for suite in suites:
            if suite is None:
                continue
            cipher = Tls13Cipher(suite, secret)
            for _ in range(updates):
                cipher = cipher.updated()
            ciphers.append(cipher)
        return ciphers

    def _secret(self, side: Side, phase: KeyPhase, updates: int) -> tuple[bytes | None, int]:
        """A secret of TLS 1.3, and how often it has to be updated: the log may have it behind key updates, too."""
        secrets = self._keys.secrets(self.client_random or b"")
        if phase is KeyPhase.EARLY:
            return secrets.get("CLIENT_EARLY_TRAFFIC_SECRET") if side is Side.CLIENT else None, 0
        if phase is KeyPhase.HANDSHAKE:
            return secrets.get(f"{side.name}_HANDSHAKE_TRAFFIC_SECRET"), 0
        labels = (f"{side.name}_TRAFFIC_SECRET_{number}" for number in range(updates, -1, -1))
        found: Iterator[tuple[bytes | None, int]] = (
            (secrets[label], missing) for missing, label in enumerate(labels) if label in secrets
        )
        return next(found, (None, 0))

    def _cipher_of_change(self, side: Side, change: int) -> "list[RecordCipher]":
        from dissector.tls.record_ciphers import tls12_ciphers

        master = self._master_secret(change)
        hello = self.server_hellos[change]
        suite = SUITES.get(hello.suite)
        if master is None or suite is None:
            return []
        ciphers = tls12_ciphers(
            suite, hello.version, master, self.client_hellos[change].random, hello.random,
            encrypt_then_mac=hello.encrypt_then_mac,
        )  # fmt: skip
        return [ciphers[side]]

    def _master_secret(self, change: int) -> bytes | None:
        hello, random = self.server_hellos[change], self.client_hellos[min(change, len(self.client_hellos) - 1)].random
        known = self._keys.master_secret(random, hello.session_id)
        suite = SUITES.get(hello.suite)
        premaster = self._keys.premaster(random, self.key_exchanges.encrypted.get(change, b""))
        if known is not None or premaster is None or suite is None:
            return known
        return self.key_exchanges.master_secret(change, premaster, suite, random, hello)


def _is_resumed(client: ClientHello, server: ServerHello, certificates: Mapping[Side, bytes]) -> bool:
    """Whether the server agreed to go on with an earlier session (RFC 8446, 4.2.11; RFC 5246, 7.4.1.3)."""
    if server.version == TLS_1_3:
        return PRE_SHARED_KEY in server.extensions
    return bool(client.session_id) and client.session_id == server.session_id and Side.SERVER not in certificates
