"""A way to a broker on which every answer comes later."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from kagent.embedded.broker import HOST


class SlowWay(threading.Thread):
    """Listens on ``port`` and passes on to ``to``; what comes back comes ``delay_s`` later, which may be changed at any time."""

    def __init__(self, port: int, to: int) -> None:
        super().__init__(daemon=True)
        self.port, self.to, self.delay_s = port, to, 0.0
        self.loop, self.listening = asyncio.new_event_loop(), threading.Event()

    def __enter__(self) -> SlowWay:
        self.start()
        assert self.listening.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self._end)
        self.join()

    def _end(self) -> None:
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.call_soon(self.loop.stop)  # after what was cancelled has ended

    def run(self) -> None:
        self.loop.run_until_complete(asyncio.start_server(self._connected, HOST, self.port))
        self.listening.set()
        self.loop.run_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            answers, asks = await asyncio.open_connection(HOST, self.to)
            with suppress(asyncio.CancelledError):
                await asyncio.gather(self._pass_on(reader, asks), self._later(answers, writer))

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def _later(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Each piece waits on its own: what is sent together still arrives together."""
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(1000)
        sending = asyncio.ensure_future(self._send(waiting, writer))
        with suppress(OSError):
            while data := await reader.read(65_536):
                await waiting.put((self.loop.time() + self.delay_s, data))
        await waiting.put((0.0, b""))
        await sending

    async def _send(self, waiting: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while (found := await waiting.get())[1]:
                await asyncio.sleep(max(0.0, found[0] - self.loop.time()))
                writer.write(found[1])
                await writer.drain()
        writer.close()
