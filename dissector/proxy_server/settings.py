"""Settings of a proxy, as chosen in the CLI and as sent to the process that proxies: one JSON object."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import ClassVar, Final, Self

from dissector.capture.live.settings import RingSettings, next_path
from dissector.core.addresses import (
    LOOPBACK,
    AddressError,
    BrokerAddress,
    broker_addresses,
    listen_address,
)

ANY_ADDRESSES: Final = ("0.0.0.0", "::")
"""Listening on these takes connections to all of a machine's addresses."""
HOLD_SECONDS: Final = 20.0
"""How long a message that is held waits for a person, if nothing else is chosen: less than clients wait for a response
(`request.timeout.ms` 30 s), and half of what coordinators wait for a member (`session.timeout.ms` 45 s)."""
FIRST_PORT: Final = 19092
"""The first port to listen on, if none is chosen; the first one that is free from here on is taken."""


@dataclass(frozen=True, slots=True)
class UpstreamTls:
    """How to speak TLS to brokers. Files are PEM; empty names stand for none."""

    ca: str = ""
    """Certificates to trust; those of the system if empty."""
    certificate: str = ""
    key: str = ""
    server_name: str = ""
    """The name that certificates must have; that of the broker's address if empty."""
    insecure: bool = False
    """Whether any certificate is taken."""


@dataclass(frozen=True, slots=True)
class ListenTls:
    """How to speak TLS to clients: with a certificate of the user's, PEM, or with one that the local CA signs."""

    certificate: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """Settings of one run of a proxy."""

    RECORDER: ClassVar[str] = "dissector.proxy_server.process"

    brokers: tuple[BrokerAddress, ...]
    """Bootstrap addresses."""
    host: str = LOOPBACK
    """The address to listen on."""
    port: int | None = None
    """The port for the first broker, and those above it for the others; None for the first that are free from
    `FIRST_PORT` on, and 0 for any that the system chooses."""
    advertise: str = ""
    """The host that is advertised to clients; by default the one that is listened on."""
    tls: UpstreamTls | None = None
    listen_tls: ListenTls | None = None
    path: str = ""
    ring: RingSettings | None = None
    faults: tuple[tuple[str, str], ...] = ()
    """Rules for faults, each with its name, empty for none, and its text."""
    is_controlled: bool = False
    """Whether rules may be added, and messages held, while it runs: then frames are looked into from the beginning, to
    know topics by their ids and the partitions of fetch sessions."""
    hold_seconds: float = HOLD_SECONDS
    """How long a message that is held waits for a person before it goes on by itself."""

    @classmethod
    def of(
        cls,
        brokers: Iterable[str],
        listen: str,
        advertise: str,
        *,
        tls: UpstreamTls | None,
        listen_tls: ListenTls | None,
        path: str,
        ring: RingSettings | None = None,
        faults: tuple[tuple[str, str], ...] = (),
        is_controlled: bool = False,
        hold_seconds: float = HOLD_SECONDS,
    ) -> Self:
        """Return settings of what a user wrote: brokers' addresses, ``[HOST:]PORT``, a host. Raises `AddressError`."""
        addresses = broker_addresses(brokers)
        host, port = listen_address(listen)
        if advertise and (":" in advertise or "/" in advertise):
            raise AddressError(f"--advertise {advertise}: a host name or an IPv4 address is expected, without a port")
        if host in ANY_ADDRESSES and not advertise:
            raise AddressError(
                f"--listen {listen} needs --advertise HOST: the name by which clients reach this machine"
            )
        return cls(addresses, host, port, advertise, tls, listen_tls, path, ring, faults, is_controlled, hold_seconds)

    def as_json(self) -> str:
        """Return JSON for the process that proxies."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the JSON of `as_json`."""
        values = json.loads(text)
        ring = values["ring"] and RingSettings(**values["ring"])
        tls = values["tls"] and UpstreamTls(**values["tls"])
        listen_tls = values["listen_tls"] and ListenTls(**values["listen_tls"])
        brokers = tuple(BrokerAddress(*each) for each in values["brokers"])
        faults = tuple((name, rule) for name, rule in values["faults"])
        parts = {"brokers": brokers, "ring": ring, "tls": tls, "listen_tls": listen_tls, "faults": faults}
        return cls(**(values | parts))

    def for_next_capture(self) -> Self:
        """Return settings for the next run, to a new file. Files of a ring have new names anyway."""
        return self if not self.path or self.ring is not None else replace(self, path=next_path(self.path))

    @property
    def advertised_host(self) -> str:
        """The host that is advertised to clients."""
        return self.advertise or self.host

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(sorted({broker.port for broker in self.brokers}))

    @property
    def title(self) -> str:
        return f"proxy for {', '.join(map(str, self.brokers))}"

    @property
    def words(self) -> str:
        return f"proxying {', '.join(map(str, self.brokers))}"

    @property
    def interface_name(self) -> str:
        return "proxy"

    @property
    def filter_expression(self) -> str:
        return ""

    def no_traffic_message(self, seconds: float) -> str:
        """Return one line for the user, after so many `seconds` without a client."""
        return f"no client connected for {seconds:.0f} s; is bootstrap.servers the address of the proxy?"

    def widening_hint(self) -> str:
        return ""
