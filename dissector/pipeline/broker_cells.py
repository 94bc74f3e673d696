"""What an exchange says about brokers, for the table `brokers`: from its bodies as JSON objects."""

from typing import Any, Final

from dissector.pipeline.partition_cells import objects
from dissector.protocol.schema.api_keys import ApiKey

Body = dict[str, Any]
BrokerCells = tuple[Any, ...]
"""Cells of `COLUMNS`."""
COLUMNS: Final = ("broker", "host", "port", "rack", "controller", "cluster_id")
_IDS: Final = {ApiKey.METADATA: "node_id", ApiKey.DESCRIBE_CLUSTER: "broker_id"}
APIS: Final = frozenset(_IDS)
"""Keys of the APIs whose exchanges have rows."""


def broker_cells(api_key: int, _request: Body | None, response: Body | None) -> list[BrokerCells]:
    """Return the cells of each broker that a response lists."""
    body, name = response or {}, _IDS[ApiKey(api_key)]
    controller = body.get("controller_id")
    return [
        (
            each.get(name), each.get("host"), each.get("port"), each.get("rack"),
            None if controller is None else controller == each.get(name), body.get("cluster_id"),
        )
        for each in objects(body, "brokers")
    ]  # fmt: skip
