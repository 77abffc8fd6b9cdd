"""What tests of the service ask it, and what they ask."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import duckdb
import httpx

import taciturn as tc
from taciturn.service.bounds import Bounds
from taciturn.service.desk import Desk
from taciturn.service.server import server_of

__all__ = ["asked_of", "by_sex", "desk_of", "emptied", "new_log"]

VARIABLES = {
    "age": ["16-64", "65", "66+"],
    "sex": ["f", "m"],
    "area": ["N1", "N2", "S1", "S2"],
}
LEVELS = {"region": ("area", ["North", "North", "South", "South"])}


def new_log(path: Path) -> tc.ReleaseLog:
    """An empty log there, whatever there was."""
    path.unlink(missing_ok=True)
    return tc.ReleaseLog(path, variables=VARIABLES, levels=LEVELS)


def emptied(path: Path) -> None:
    """Forget what was released; it remains the log that workers have opened."""
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM tables; DELETE FROM releases")


def by_sex(f: Any, m: Any, **more: Any) -> dict[str, Any]:
    """A body about a table by sex."""
    table = {"dims": ["sex"], "categories": {"sex": ["f", "m"]}, "counts": [f, m]}
    return {"table": table, **more}


@contextmanager
def asked_of(desk: Any, bounds: Bounds) -> Iterator[httpx.Client]:
    """A client of a server with these workers, in a thread."""
    server = server_of(desk, bounds)
    with socket.create_server(("127.0.0.1", 0)) as opened:
        address = f"http://127.0.0.1:{opened.getsockname()[1]}"
        thread = Thread(target=server.run, kwargs={"sockets": [opened]})
        thread.start()
        try:
            while not server.started:
                sleep(0.01)
            with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def desk_of(path: Path, bounds: Bounds) -> Iterator[Desk]:
    """Workers that end."""
    desk = Desk(path, bounds)
    try:
        yield desk
    finally:
        desk.close()
