"""The queue before the workers, which is bounded in length and in time."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from taciturn.service.answers import Answer, Kind
from taciturn.service.bounds import Bounds
from taciturn.service.worker import Worker

__all__ = ["Desk"]


class Desk:
    """Takes requests to workers.

    Parameters
    ----------
    path : Path
        The file of the log.
    bounds : Bounds
        How much may be asked at once.

    Raises
    ------
    FileFormatError
        The file is no log.
    """

    def __init__(self, path: Path, bounds: Bounds) -> None:
        self._bounds = bounds
        self._workers: list[Worker] = []
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        self._free = asyncio.Semaphore(bounds.workers)
        self._threads = ThreadPoolExecutor(bounds.workers)  # that wait for an answer
        self._here = 0
        try:
            for _ in range(bounds.workers):
                self._workers.append(Worker(path, bounds.seconds))
            for worker in self._workers:
                worker.wait()
                self._idle.put(worker)
        except BaseException:
            self.close()
            raise

    async def ask(self, kind: Kind, asked: Mapping[str, Any]) -> Answer:
        """The answer; at once, if there are too many requests, that there is none."""
        if self._here >= self._bounds.workers + self._bounds.waiting:
            return Answer(503, {"error": f"{self._here} requests are waiting: ask again later"})
        self._here += 1
        try:
            try:
                async with asyncio.timeout(self._bounds.patience):
                    await self._free.acquire()
            except TimeoutError:
                waited = f"waited for {self._bounds.patience:g} seconds: ask again later"
                return Answer(503, {"error": waited})
            try:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._threads, self._ask, kind, asked)
            finally:
                self._free.release()
        finally:
            self._here -= 1

    def close(self) -> None:
        """End all workers."""
        self._threads.shutdown(wait=False)
        for worker in self._workers:
            with suppress(OSError):
                worker.close()

    def _ask(self, kind: Kind, asked: Mapping[str, Any]) -> Answer:
        worker = self._idle.get()
        try:
            return worker.ask(kind, asked)
        finally:
            self._idle.put(worker)
