"""Small real servers on loopback, each a function of a connection, and librdkafka's mock cluster."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

Handler = Callable[[socket.socket], object]


@contextlib.contextmanager
def serving(handle: Handler) -> Iterator[str]:
    """A server that runs `handle` for each connection, one after the other; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:  # closed: the test is over
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(10)
                handle(connection)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def frame(connection: socket.socket) -> bytes:
    """One frame, without its size; ConnectionError where there is no more."""
    size = int.from_bytes(_exactly(connection, 4), "big")
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise ConnectionError
        data += part
    return data


@contextlib.contextmanager
def mock_cluster(brokers: int = 3) -> Iterator[list[str]]:
    """A cluster of librdkafka's, which lives as long as its producer does; gives the brokers' addresses."""
    from confluent_kafka import Producer  # here, for a machine that can't have it still runs the other servers

    producer = Producer({"test.mock.num.brokers": brokers, "log_level": 0})
    deadline = time.monotonic() + 20
    while len(found := producer.list_topics(timeout=10).brokers) < brokers:
        assert time.monotonic() < deadline, "the mock cluster did not come up"
    yield [f"{broker.host}:{broker.port}" for broker in found.values()]
    del producer
