"""The service, running until it is told to end."""

import socket
from collections.abc import Callable
from pathlib import Path

from taciturn.errors import MissingDependencyError, ParameterError
from taciturn.service.bounds import Bounds

__all__ = ["serve"]


def serve(
    path: Path, *, host: str, port: int, bounds: Bounds, started: Callable[[str], None]
) -> None:
    """Answer on a port of this machine, until SIGINT or SIGTERM.

    Parameters
    ----------
    path : Path
        The file of the log.
    host : {"127.0.0.1", "::1"}
        The loopback address.
    port : int
        The port; 0 for one that is free.
    bounds : Bounds
        How much may be asked at once.
    started : callable
        Is told the address, once requests are answered.

    Raises
    ------
    ParameterError
        The port is taken.
    FileFormatError
        The file is no log.
    MissingDependencyError
        The extra ``service`` is not installed.
    """
    try:
        import duckdb  # noqa: F401 - before a process needs it

        from taciturn.service.desk import Desk
        from taciturn.service.server import server_of
    except ImportError:
        raise MissingDependencyError(
            "the service needs FastAPI, uvicorn and DuckDB: install 'taciturn[service]'"
        ) from None
    with _opened(host, port) as opened:
        desk = Desk(path, bounds)
        try:
            shown = f"[{host}]" if ":" in host else host
            started(f"http://{shown}:{opened.getsockname()[1]}")
            server_of(desk, bounds).run(sockets=[opened])
        finally:
            desk.close()


def _opened(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ParameterError(f"port {port} of {host} cannot be used: {error.strerror}") from None
