"""A proxy that delays whatever a server says: a slow broker."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator

PIECE = 65_536


@contextlib.contextmanager
def delayed(port: int, server_port: int, seconds: float) -> Iterator[None]:
    """Listen at `port` for clients of the server on `server_port`, whose answers come `seconds` late."""
    loop = asyncio.new_event_loop()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", server_port)
        await asyncio.gather(_forward(reader, server_writer, 0), _forward(server_reader, writer, seconds))

    async def start() -> None:
        await asyncio.start_server(serve, "127.0.0.1", port)

    loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Each piece waits by itself, so that they do not wait for each other."""
    pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    clock = asyncio.get_running_loop().time

    async def read() -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(PIECE):
                pieces.put_nowait((clock() + seconds, data))
        pieces.put_nowait((clock(), b""))

    async def write() -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                due, data = await pieces.get()
                await asyncio.sleep(max(0, due - clock()))
                if not data:
                    break
                writer.write(data)
                await writer.drain()
        writer.close()

    await asyncio.gather(read(), write())
