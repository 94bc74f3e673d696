"""What to set in a client, in the words of its own settings: advice for one client must not name settings of another.

The names are those of `analysis/diff/client_settings.json`'s sources. A family without a setting gets what can be done
without it.
"""

from typing import Final, NamedTuple

from dissector.exchange import client_families as of


class ClientAdvice(NamedTuple):
    """What to do in a client. Each is a clause without a subject: ``set security.protocol=SSL``."""

    tls: str
    """To speak TLS to a listener."""
    login: str
    """To log in."""
    older: str
    """For a broker that is older than the client, which asks for versions with ApiVersions."""
    fixed: str
    """The same where the client does not ask: its versions are those of a setting, or the only ones that it has."""
    newer: str
    """For a broker that is newer than the versions that the client uses."""


_KAFKA_TLS: Final = "set security.protocol=SSL or SASL_SSL"
_KAFKA_LOGIN: Final = "set security.protocol=SASL_PLAINTEXT (SASL_SSL with TLS) and sasl.mechanism"
_PYTHON_TLS: Final = 'set security_protocol="SSL" or "SASL_SSL"'
_PYTHON_LOGIN: Final = 'set security_protocol="SASL_PLAINTEXT" ("SASL_SSL" with TLS) and sasl_mechanism'
_OLDER_CLIENT: Final = "use an older client"
_UPGRADE: Final = "upgrade the client"
_SETTINGS: Final = "broker.version.fallback in librdkafka, api_version in kafka-python, Config.Version in sarama"
UNKNOWN_CLIENT: Final = ClientAdvice(
    "set security.protocol=SSL or SASL_SSL, or what the client calls it",
    "set security.protocol=SASL_PLAINTEXT (SASL_SSL with TLS) and sasl.mechanism, or what the client calls them",
    f"use an older client, or set the broker's release in this one ({_SETTINGS})",
    f"set its release in the client ({_SETTINGS})",
    f"upgrade the client, or remove the setting that fixes its versions ({_SETTINGS})",
)
_ADVICE: Final = {
    of.JAVA: ClientAdvice(_KAFKA_TLS, _KAFKA_LOGIN, _OLDER_CLIENT, _OLDER_CLIENT, _UPGRADE),
    of.LIBRDKAFKA: ClientAdvice(
        _KAFKA_TLS, _KAFKA_LOGIN,
        "use an older client, or api.version.request=false and broker.version.fallback",
        "set broker.version.fallback to its release",
        "upgrade the client, or remove api.version.request=false and broker.version.fallback",
    ),
    of.KAFKA_PYTHON: ClientAdvice(
        _PYTHON_TLS, _PYTHON_LOGIN, "set api_version to the broker's release, or use an older client",
        "set api_version to its release",
        "upgrade the client, or remove api_version",
    ),
    of.AIOKAFKA: ClientAdvice(
        _PYTHON_TLS, _PYTHON_LOGIN, "set api_version to the broker's release, or use an older client",
        "set api_version to its release",
        "upgrade the client, or remove api_version",
    ),
    of.FRANZ_GO: ClientAdvice(
        "use kgo.DialTLSConfig", "use kgo.SASL", "use kgo.MaxVersions with the broker's release",
        "use kgo.MaxVersions with its release",
        "upgrade the client, or remove kgo.MaxVersions",
    ),
    of.SARAMA: ClientAdvice(
        "set Config.Net.TLS.Enable", "set Config.Net.SASL.Enable and its mechanism",
        "set Config.Version to the broker's release", "set Config.Version to its release",
        "raise Config.Version to the broker's release",
    ),
    of.KAFKAJS: ClientAdvice("set ssl", "set sasl", _OLDER_CLIENT, _OLDER_CLIENT, _UPGRADE),
    of.KAFKA_GO: ClientAdvice(
        "set TLS of the Dialer or Transport", "set SASLMechanism of the Dialer, or SASL of the Transport",
        _OLDER_CLIENT, _OLDER_CLIENT, _UPGRADE,
    ),
    of.RSKAFKA: ClientAdvice("use tls_config of the ClientBuilder", "use sasl_config of the ClientBuilder",
                             _OLDER_CLIENT, _OLDER_CLIENT, _UPGRADE),
    of.PLATFORMATIC: ClientAdvice("set tls", "set sasl", _OLDER_CLIENT, _OLDER_CLIENT, _UPGRADE),
}  # fmt: skip


def client_advice(*names: str) -> ClientAdvice:
    """Return what to do in a client, by the first of its names that is known: its software, its client id."""
    return next((_ADVICE[found] for each in names if (found := of.family(each)) in _ADVICE), UNKNOWN_CLIENT)
