"""Faults on purpose: rules that say what becomes of requests and responses on their way through a proxy."""

from dissector.proxy_server.faults.errors import FaultError
from dissector.proxy_server.faults.files import FaultFileError, read_file
from dissector.proxy_server.faults.hook import FaultHook
from dissector.proxy_server.faults.rules import FaultRule, read_rule

__all__ = ["FaultError", "FaultFileError", "FaultHook", "FaultRule", "read_file", "read_rule"]
