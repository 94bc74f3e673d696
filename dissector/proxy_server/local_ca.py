"""The local certificate authority that signs a proxy's certificates: made once, in the user's data folder.

``ca.key`` has its key and its certificate, ``ca.pem`` and ``ca.p12`` the certificate alone, for clients that are to
trust it.

Invariants:
  * the key is in a file that only its user may read (0600), and in no other;
  * processes that make it at the same time end up with the same one;
  * a certificate for a proxy is made for each run, and is never kept.

`cryptography` is imported on use.
"""

import os
import ssl
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from dissector.core.files import data_folder, written_beside
from dissector.core.text import os_reason
from dissector.proxy_server.upstream import TlsError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, GeneralName, Name

PASSWORD: Final = "changeit"
"""Of the PKCS#12 file, which has nothing that is secret: Java expects one, and uses this word itself."""
ALIAS: Final = "kdissect"
CA_NAME: Final = "kdissect proxy local CA"
CA_DAYS: Final = 3_650
LEAF_DAYS: Final = 397
"""What Apple's clients take at most is 398."""
_BEFORE: Final = timedelta(days=1)
"""Clocks of containers differ."""
_LONGEST_COMMON_NAME: Final = 64


class LocalCa(NamedTuple):
    """The authority."""

    certificate: "Certificate"
    key: "EllipticCurvePrivateKey"
    pem: Path
    """What clients trust, as PEM."""
    pkcs12: Path
    """The same as a trust store of Java's, with the password `PASSWORD`."""

    @property
    def valid_until(self) -> datetime:
        return self.certificate.not_valid_after_utc


def folder() -> Path:
    """Return the folder of the authority. Raises `TlsError` for a user without a home."""
    try:
        return data_folder() / "ca"
    except RuntimeError:
        raise TlsError("no home folder for the local CA; set XDG_DATA_HOME") from None


def local_ca() -> LocalCa:
    """Return the authority, which is made if there is none. Raises `TlsError`."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        load_pem_private_key,
        pkcs12,
    )

    home = folder()
    kept, pem, store = home / "ca.key", home / "ca.pem", home / "ca.p12"
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not kept.exists():
            _write(kept, _new_ca(), replaces=False)
        data = kept.read_bytes()
    except OSError as error:
        raise TlsError(f"local CA: {error.filename or home}: {os_reason(error)}") from None
    try:
        key, certificate = load_pem_private_key(data, None), x509.load_pem_x509_certificate(data)
        if not isinstance(key, EllipticCurvePrivateKey) or key.public_key() != certificate.public_key():
            raise ValueError
    except (ValueError, TypeError):
        raise TlsError(f"local CA: {kept}: damaged; remove it, and a new one is created") from None
    if certificate.not_valid_after_utc < datetime.now(UTC):
        raise TlsError(f"local CA: {kept}: it has expired; remove it, and a new one is created")
    public = certificate.public_bytes(Encoding.PEM)
    try:
        if not pem.exists() or pem.read_bytes() != public or not store.exists():
            trusted = pkcs12.PKCS12Certificate(certificate, ALIAS.encode())
            encryption = BestAvailableEncryption(PASSWORD.encode())
            _write(store, pkcs12.serialize_java_truststore([trusted], encryption))
            _write(pem, public)  # last: where it is, the other one is of the same authority
    except OSError as error:
        raise TlsError(f"local CA: {error.filename or home}: {os_reason(error)}") from None
    return LocalCa(certificate, key, pem, store)


def load_made_certificate(context: ssl.SSLContext, ca: LocalCa, names: Iterable[str]) -> None:
    """Give a context a certificate for host names and addresses, which is made now. Raises `TlsError`."""
    data = _leaf(ca, names)
    try:
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # 0600; ssl takes a key from a file only
            file.write(data)
            file.flush()
            context.load_cert_chain(file.name)
    except OSError as error:
        raise TlsError(f"--listen-tls: {os_reason(error)}") from None


def _new_ca() -> bytes:
    """Return a key and its certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(CA_NAME)
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + timedelta(days=CA_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pem(key, certificate)


def _leaf(ca: LocalCa, names: Iterable[str]) -> bytes:
    """Return a key, and a certificate for these names that the authority signed."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID

    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    found = list(dict.fromkeys(map(_general_name, names)))
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.key.public_key())
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=False, crl_sign=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    certificate = (
        x509.CertificateBuilder()
        .subject_name(_name(str(found[0].value)))
        .issuer_name(ca.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(min(now + timedelta(days=LEAF_DAYS), ca.valid_until))
        .add_extension(x509.SubjectAlternativeName(found), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(authority, critical=False)
        .sign(ca.key, hashes.SHA256())
    )
    return _pem(key, certificate)


def _pem(key: "EllipticCurvePrivateKey", certificate: "Certificate") -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private + certificate.public_bytes(Encoding.PEM)


def _name(text: str) -> "Name":
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:_LONGEST_COMMON_NAME])])


def _general_name(host: str) -> "GeneralName":
    """Return a host as certificates have it. Raises `TlsError` for a name that can't be one."""
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        return x509.DNSName(host.encode("idna").decode())
    except (UnicodeError, ValueError):
        raise TlsError(f"--listen-tls: a certificate can't have the name {host}") from None


def _write(path: Path, data: bytes, *, replaces: bool = True) -> None:
    """Write a file in one step; without `replaces` one that is there stays, also one that another process has just
    made. Raises `OSError`."""
    with written_beside(path, data) as written:
        if replaces:
            written.chmod(0o644)
            written.replace(path)
        else:
            with suppress(FileExistsError):
                os.link(written, path)
