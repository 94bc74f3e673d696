"""The TLS of a connection as tables have it: without its hellos and certificates."""

from collections.abc import Mapping
from typing import Any, Final

from dissector.tls.session import TlsSession, TlsState

COLUMNS: Final = (
    "tls_version", "tls_cipher", "tls_sni", "tls_alpn", "tls_principal", "tls_resumed", "tls_state", "tls_ja4",
)  # fmt: skip
"""Of the table `connections`."""


class TableTlsSession(TlsSession):
    """A session whose texts come from cells."""

    cells: Mapping[str, Any]

    @classmethod
    def of(cls, cells: Mapping[str, Any]) -> "TableTlsSession | None":
        """Return the session of a row; None if its connection is not encrypted."""
        if cells.get("tls_state") is None:
            return None
        session = cls(
            TlsState(cells["tls_state"]), is_resumed=cells["tls_resumed"], application_protocol=cells["tls_alpn"]
        )
        session.cells = cells
        return session

    @property
    def version(self) -> str | None:
        return self._text("tls_version")

    @property
    def cipher(self) -> str | None:
        return self._text("tls_cipher")

    @property
    def server_name(self) -> str | None:
        return self._text("tls_sni")

    @property
    def ja4(self) -> str | None:
        return self._text("tls_ja4")

    @property
    def principal(self) -> str | None:
        return self._text("tls_principal")

    def _text(self, name: str) -> str | None:
        found: str | None = self.cells[name]
        return found
