"""Logins with a name and a password of the user's: SASL PLAIN and SCRAM (RFC 4616, RFC 5802).

Recorded tokens are no login: those of SCRAM are good for one connection, and those of PLAIN are somebody's password.
"""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Final

MECHANISMS: Final = {"PLAIN": "", "SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Those that can be chosen, with the hash of SCRAM."""


class LoginError(Exception):
    """A login that failed; one plain line."""


@dataclass(frozen=True, slots=True)
class Login:
    """Who logs in, and how."""

    mechanism: str
    user: str
    password: str


class Dialogue:
    """The tokens of one login, one after the other."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._nonce = secrets.token_urlsafe(18)
        self._signature = b""
        self.is_done = False

    @property
    def _first(self) -> str:
        name = self._login.user.replace("=", "=3D").replace(",", "=2C")
        return f"n={name},r={self._nonce}"

    def begin(self) -> bytes:
        """Return the first token."""
        if not MECHANISMS[self._login.mechanism]:
            self.is_done = True
            return f"\0{self._login.user}\0{self._login.password}".encode()
        return f"n,,{self._first}".encode()

    def go_on(self, token: bytes) -> bytes:
        """Return the token that follows the broker's. Raises `LoginError`."""
        digest = MECHANISMS[self._login.mechanism]
        try:
            text = token.decode()
            parts = dict(part.split("=", 1) for part in text.split(","))
            nonce, salt, iterations = parts["r"], base64.b64decode(parts["s"]), int(parts["i"])
        except (ValueError, KeyError):
            raise LoginError("the broker's SCRAM token can't be read") from None
        if not nonce.startswith(self._nonce) or not 1 <= iterations <= 1_000_000:
            raise LoginError("the broker's SCRAM token does not belong to this login")
        salted = hashlib.pbkdf2_hmac(digest, self._login.password.encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", digest)
        final = f"c={base64.b64encode(b'n,,').decode()},r={nonce}"
        signed = f"{self._first},{text},{final}".encode()
        stored = hashlib.new(digest, client_key).digest()
        proof = bytes(a ^ b for a, b in zip(client_key, hmac.digest(stored, signed, digest), strict=True))
        self._signature = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
        self.is_done = True
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def check(self, token: bytes) -> None:
        """Hold the broker to knowing the password, too (SCRAM). Raises `LoginError`."""
        if self._signature and f"v={base64.b64encode(self._signature).decode()}".encode() not in token:
            raise LoginError("the broker does not know the password: its signature is wrong")
