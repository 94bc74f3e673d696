"""Finds the sequence number with which a secret opens a record of TLS 1.3, of the numbers in a range.

The tag of a record alone says whether a number is right, and takes a microsecond to check. With AES-GCM most numbers
are excluded without it: the last byte of a record's plaintext is its content type or a zero of padding (RFC 8446, 5.2),
and it depends on one block of the key stream, of which a library makes millions a second.

Importing this module imports `cryptography`.
"""

from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dissector.core.arrays import Int64
from dissector.tls.key_derivation import expand_label
from dissector.tls.record_ciphers import Tls13Cipher
from dissector.tls.record_parts import TAG, BadRecordError
from dissector.tls.suites import CipherKind, CipherSuite

CHUNK: Final = 1 << 16
_BLOCK: Final = 16
_FIRST_COUNTER: Final = 2
"""Of the key stream: block 1 encrypts the tag (NIST SP 800-38D, 7.1)."""
_LAST_BYTES: Final = np.isin(np.arange(256), (0, 21, 22, 23))
_COUNTER_BLOCK: Final = np.dtype([("salt", ">u4"), ("nonce", ">u8"), ("counter", ">u4")])


class SequenceSearch:
    """The search for the number of one record, with one secret."""

    def __init__(self, suite: CipherSuite, secret: bytes) -> None:
        self._cipher = Tls13Cipher(suite, secret)
        self._suite = suite
        self._secret = secret

    def find(self, header: bytes, fragment: bytes, low: int, high: int) -> int | None:
        """Return the number from `low` to before `high` that opens the record; None if there is none."""
        is_gcm = self._suite.kind is CipherKind.GCM and len(fragment) > TAG
        for start in range(low, high, CHUNK):
            numbers = np.arange(start, min(start + CHUNK, high))
            for number in (self._possible(fragment, numbers) if is_gcm else numbers).tolist():
                try:
                    self._cipher.open(header, fragment, number)
                except BadRecordError:
                    continue
                return int(number)
        return None

    def _possible(self, fragment: bytes, numbers: Int64) -> Int64:
        """The numbers with which the last byte of plaintext may be one."""
        key = expand_label(self._suite.prf_hash, self._secret, b"key", self._suite.key_size)
        iv = expand_label(self._suite.prf_hash, self._secret, b"iv", 12)
        block, at = divmod(len(fragment) - TAG - 1, _BLOCK)
        blocks = np.empty(len(numbers), _COUNTER_BLOCK)
        blocks["salt"] = int.from_bytes(iv[:4], "big")
        blocks["nonce"] = numbers.astype(np.uint64) ^ np.uint64(int.from_bytes(iv[4:], "big"))
        blocks["counter"] = _FIRST_COUNTER + block
        stream = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(blocks.tobytes())
        last = np.frombuffer(stream, np.uint8)[at::_BLOCK] ^ np.uint8(fragment[-TAG - 1])
        possible: Int64 = numbers[_LAST_BYTES[last]]
        return possible
