"""Encrypted connections: TLS records decrypted with the secrets of a key log. Knows nothing of Kafka."""

from dissector.tls.key_log import KeyLog, KeyLogError, KeyLogFile
from dissector.tls.stage import TlsStage

__all__ = ["KeyLog", "KeyLogError", "KeyLogFile", "TlsStage"]
