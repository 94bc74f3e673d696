"""The readers that ours are measured against: kafka-python's generated decoders, kio's native ones. They are installed
below `build/` when first needed and loaded into this process, so that all are timed in turn in one place."""

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parents[2] / "build" / "bench" / "peers"
PACKAGES: Final = ("kafka-python==3.0.12", "kio==0.6.5", "lz4", "python-snappy", "zstandard")
KAFKA_PYTHON_MODULES: Final = (
    "consumer.fetch", "consumer.group", "consumer.offsets", "metadata.api_versions", "metadata.find_coordinator",
    "metadata.metadata", "producer.produce",
)  # fmt: skip

Read = Callable[[bytes], object]


def install() -> str:
    """Make the peers importable; the reason where they can't be, else nothing."""
    if not (FOLDER / "kio").is_dir():
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        done = subprocess.run([*pip, "--target", str(FOLDER), *PACKAGES], capture_output=True, text=True)
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))  # last: our own dependencies come first
    try:
        importlib.import_module("kio.index")
        importlib.import_module("kafka.record.default_records")
    except ImportError as error:
        return str(error)
    return ""


def kafka_python_class(message: str) -> Any:
    """Its class of a request or response."""
    modules = (importlib.import_module(f"kafka.protocol.{name}") for name in KAFKA_PYTHON_MODULES)
    return next(getattr(module, message) for module in modules if hasattr(module, message))


def kafka_python(message: str, version: int) -> Read:
    """Its generated decoder of a body, without what finds it."""
    found = kafka_python_class(message)
    flexible = found.flexible_version_q(version)
    decode = found._struct.compiled_decode_from(version, compact=flexible, tagged=flexible, data_class=found[None])
    return lambda data: decode(memoryview(data), 0)


def kio_class(key: int, version: int, *, request: bool) -> Any:
    """Its class of one version of a request or response."""
    index = importlib.import_module("kio.index")
    return (index.load_request_schema if request else index.load_response_schema)(key, version)


def kio(key: int, version: int, *, request: bool) -> Read:
    """Its native reader of a body."""
    read = importlib.import_module("kio.serial").entity_reader(kio_class(key, version, request=request))
    return lambda data: read(data, 0)
