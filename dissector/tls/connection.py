"""What the two ends of a TLS connection agreed on, and the keys that follow from it and from a key log.

Both directions share it: neither can be read on without what the other one said. Hellos are counted, as a renegotiation
has others: the n-th ChangeCipherSpec of a direction goes with the n-th hellos of the connection.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from dissector.tls.certificates import first_certificate
from dissector.tls.handshake import PRE_SHARED_KEY, ClientHello, ServerHello, application_protocol, parse_extensions
from dissector.tls.key_log import KeyLog
from dissector.tls.session import TlsSession, TlsState
from dissector.tls.suites import SUITES, CipherSuite

if TYPE_CHECKING:  # imported on use: without keys nothing is decrypted
    from dissector.tls.record_ciphers import RecordCipher

TLS_1_3: Final = 0x0304
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
        self._certificates: dict[Side, bytes] = {}
        self._application_protocol: str | None = None
        """As a server of TLS 1.3 says it."""
        self._session: tuple[TlsState, TlsSession] | None = None
        """The newest one, with the state that it was made for."""

    @property
    def version(self) -> int | None:
        """The version that was agreed on."""
        return self.server_hellos[-1].version if self.server_hellos else None

    @property
    def suite(self) -> CipherSuite | None:
        """The suite that was agreed on; None if it is not known, or can't be decrypted."""
        return SUITES.get(self.server_hellos[-1].suite) if self.server_hellos else None

    def add_client_hello(self, direction: int, hello: ClientHello) -> None:
        """Take note of a ClientHello."""
        self.client, self._session = direction, None
        if self.client_hellos and self.client_hellos[-1].random == hello.random:
            self.client_hellos[-1] = hello
        elif len(self.client_hellos) < MOST_HELLOS:
            self.client_hellos.append(hello)

    def add_server_hello(self, direction: int, hello: ServerHello) -> None:
        """Take note of a ServerHello, or of a HelloRetryRequest."""
        self.client, self._session = direction ^ 1, None
        if not hello.is_hello_retry and len(self.server_hellos) < MOST_HELLOS:
            self.server_hellos.append(hello)

    def add_encrypted_extensions(self, body: bytes) -> None:
        """Take note of what a server of TLS 1.3 says behind its hello."""
        self._application_protocol = application_protocol(parse_extensions(body))
        self._session = None

    def add_certificate(self, direction: int, body: bytes) -> None:
        """Take note of a Certificate message."""
        side = self.side(direction)
        found = first_certificate(body, has_context=self.version == TLS_1_3)
        if side is not None and found is not None:
            self._certificates[side] = found
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
        return self._session[1]

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
            None if server is None else server.version,
            None if server is None else server.suite,
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
        if not self.client_hellos:
            return False
        if self._keys.secrets(self.client_hellos[-1].random):
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
        known = self._keys.secrets(self.client_hellos[-1].random)
        return all(_label(side, KeyPhase.TRAFFIC) in known for side in Side)

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
        if side is None or not self.client_hellos:
            return []
        if epoch.phase is None:
            return self._cipher_of_change(side, epoch.number)
        return self._ciphers_of_phase(side, epoch.phase, epoch.number)

    def _ciphers_of_phase(self, side: Side, phase: KeyPhase, updates: int) -> "list[RecordCipher]":
        from dissector.tls.record_ciphers import Tls13Cipher

        secret = self._keys.secrets(self.client_hellos[-1].random).get(_label(side, phase))
        if secret is None or (phase is KeyPhase.EARLY and side is Side.SERVER):
            return []
        suites = [self.suite] if self.server_hellos else _suites_of_secret(secret)
        ciphers: list[RecordCipher] = []
        for suite in suites:
            if suite is None:
                continue
            cipher = Tls13Cipher(suite, secret)
            for _ in range(updates):
                cipher = cipher.updated()
            ciphers.append(cipher)
        return ciphers

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
        return self._keys.master_secret(hello.version, random, hello.random, hello.session_id)


def _label(side: Side, phase: KeyPhase) -> str:
    """The name of a secret of TLS 1.3 in a key log (RFC 9850)."""
    return {
        KeyPhase.EARLY: "CLIENT_EARLY_TRAFFIC_SECRET",
        KeyPhase.HANDSHAKE: f"{side.name}_HANDSHAKE_TRAFFIC_SECRET",
        KeyPhase.TRAFFIC: f"{side.name}_TRAFFIC_SECRET_0",
    }[phase]


def _is_resumed(client: ClientHello, server: ServerHello, certificates: Mapping[Side, bytes]) -> bool:
    """Whether the server agreed to go on with an earlier session (RFC 8446, 4.2.11; RFC 5246, 7.4.1.3)."""
    if server.version == TLS_1_3:
        return PRE_SHARED_KEY in server.extensions
    return bool(client.session_id) and client.session_id == server.session_id and Side.SERVER not in certificates


def _suites_of_secret(secret: bytes) -> list[CipherSuite]:
    """The suites of TLS 1.3 with a hash of a secret's size, for early data before any ServerHello."""
    of_size = {32: (0x1301, 0x1303, 0x1304, 0x1305), 48: (0x1302,)}
    return [SUITES[number] for number in of_size.get(len(secret), ())]
