"""A proxy between Kafka clients and brokers, which records what passes as packets and can change it."""

from dissector.core.addresses import AddressError, BrokerAddress
from dissector.proxy_server.settings import ListenTls, ProxySettings, UpstreamTls

__all__ = ["AddressError", "BrokerAddress", "ListenTls", "ProxySettings", "UpstreamTls"]
