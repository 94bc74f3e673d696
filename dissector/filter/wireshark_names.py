"""Fields of Wireshark's, and the names of ours that have the same: what is suggested to those who type them."""

from typing import Final

OURS: Final = {
    "frame.number": "number", "frame.time": "time", "frame.time_relative": "time", "frame.len": "size",
    "tcp.stream": "conn", "_ws.expert": "finding",
    "kafka.api_key": "api", "kafka.api_version": "version", "kafka.client_id": "client_id",
    "kafka.consumer_group": "group", "kafka.correlation_id": "corr", "kafka.error": "error", "kafka.len": "size",
    "kafka.partition_id": "partition", "kafka.request_frame": "request", "kafka.required_acks": "request.acks",
    "kafka.response_frame": "response", "kafka.topic_name": "topic",
    "tls.handshake.extensions_server_name": "tls.sni",
}  # fmt: skip
