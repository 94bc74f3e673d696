"""The ways through the proxy: which listener of the brokers, how the proxy speaks to both sides, how clients log in."""

import base64
import json
import time
from typing import Final, NamedTuple

from dissector.proxy_server.local_ca import local_ca
from dissector.proxy_server.settings import ListenTls, UpstreamTls
from tools.lab.proxied.certificates import client_certificate
from tools.lab.survey.clients import SurveyedClient
from tools.lab.tools import BROKER_PEM

_REFUSALS: Final = {
    ("kafka-go", "OAUTHBEARER"): "has no OAUTHBEARER",
    ("librdkafka-2.3", "SCRAM-SHA-256"): "brokers of this release reject its login even without the proxy",
}
_TOKEN_SECONDS: Final = 7_200


class Way(NamedTuple):
    """One of them."""

    name: str
    title: str
    """For the page."""
    listener: str
    """Of the brokers."""
    is_encrypted: bool = True
    """Whether the proxy speaks TLS to the brokers."""
    with_certificate: bool = False
    """Whether it shows one of its own."""
    listens_with_tls: bool = False
    """Whether clients speak TLS to the proxy, and trust its CA."""
    mechanism: str = ""
    """Of the clients' login."""

    @property
    def upstream(self) -> UpstreamTls | None:
        """How the proxy connects to the brokers."""
        if not self.is_encrypted:
            return None
        certificate, key = map(str, client_certificate()) if self.with_certificate else ("", "")
        return UpstreamTls(str(BROKER_PEM), certificate, key)

    @property
    def listen_tls(self) -> ListenTls | None:
        """How clients connect to the proxy."""
        return ListenTls() if self.listens_with_tls else None

    @property
    def environment(self) -> dict[str, str]:
        """What tells the clients' programs how to log in, and whom to trust."""
        trust = {"LAB_TRUST": str(local_ca().pem)} if self.listens_with_tls else {}
        return trust | ({"LAB_MECHANISM": self.mechanism, "LAB_TOKEN": _token()} if self.mechanism else {})

    def refusal(self, client: SurveyedClient) -> str:
        """Why a client can't go this way; empty if it can."""
        return _REFUSALS.get((client.name, self.mechanism), "")


WAYS: Final = {
    way.name: way
    for way in (
        Way("plain", "plain", "CLIENTS", is_encrypted=False),
        Way("tls", "TLS to the brokers", "TLS"),
        Way("mtls", "mutual TLS to the brokers", "MTLS", with_certificate=True),
        Way("both", "TLS on both sides", "TLS", listens_with_tls=True),
        Way("PLAIN", "SASL PLAIN", "SASL", mechanism="PLAIN"),
        Way("SCRAM", "SCRAM-SHA-256", "SASL", mechanism="SCRAM-SHA-256"),
        Way("OAUTHBEARER", "OAUTHBEARER, TLS on both sides", "SASL", listens_with_tls=True, mechanism="OAUTHBEARER"),
    )
}


def _token() -> str:
    """Return a token that nobody signed, as the lab's brokers take it (RFC 7515, appendix A.5)."""
    now = int(time.time())
    claims = {"sub": "alice", "iat": now, "exp": now + _TOKEN_SECONDS}
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."
