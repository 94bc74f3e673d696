"""The client's certificate of the lab as PEM files, as the proxy takes it."""

from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

from tools.lab.tools import BUILD, CLIENT_KEYSTORE, KEYSTORE_PASSWORD


def client_certificate() -> tuple[Path, Path]:
    """Write the certificate and its key; their paths."""
    key, certificate, _ = pkcs12.load_key_and_certificates(CLIENT_KEYSTORE.read_bytes(), KEYSTORE_PASSWORD.encode())
    assert key is not None
    assert certificate is not None
    paths = BUILD / "proxied-client.pem", BUILD / "proxied-client.key"
    paths[0].write_bytes(certificate.public_bytes(Encoding.PEM))
    paths[1].touch(0o600)
    paths[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return paths
