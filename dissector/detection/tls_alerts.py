"""TLS alerts that are not encrypted: why a handshake failed. RFC 8446, 6, and those of older versions of TLS."""

import re
from typing import Final

_RECORD: Final = re.compile(rb"\x15\x03[\x00-\x04]\x00\x02[\x01\x02](.)", re.DOTALL)
NO_ALERT: Final = 0
CLOSE_NOTIFY, USER_CANCELED = 0, 90
ORDINARY: Final = (CLOSE_NOTIFY, USER_CANCELED)
"""Alerts with which a connection ends without an error."""
NAMES: Final = {
    10: "unexpected_message", 20: "bad_record_mac", 21: "decryption_failed", 22: "record_overflow",
    30: "decompression_failure", 40: "handshake_failure", 41: "no_certificate", 42: "bad_certificate",
    43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired", 46: "certificate_unknown",
    47: "illegal_parameter", 48: "unknown_ca", 49: "access_denied", 50: "decode_error", 51: "decrypt_error",
    60: "export_restriction", 70: "protocol_version", 71: "insufficient_security", 80: "internal_error",
    86: "inappropriate_fallback", 100: "no_renegotiation", 109: "missing_extension", 110: "unsupported_extension",
    111: "certificate_unobtainable", 112: "unrecognized_name", 113: "bad_certificate_status_response",
    114: "bad_certificate_hash_value", 115: "unknown_psk_identity", 116: "certificate_required",
    120: "no_application_protocol",
}  # fmt: skip


def alert_number(data: bytes) -> int:
    """Return the number of the alert that these bytes are, `NO_ALERT` if they are none or it is no error."""
    match = _RECORD.fullmatch(data)
    number = match[1][0] if match else NO_ALERT
    return NO_ALERT if number in ORDINARY else number


def alert_name(number: int) -> str:
    """Return the name of an alert."""
    return NAMES.get(number, f"alert {number}")
