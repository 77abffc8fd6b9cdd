"""The server before the application."""

import uvicorn

from taciturn.service.app import application
from taciturn.service.bounds import Bounds
from taciturn.service.desk import Desk

__all__ = ["server_of"]

_CONNECTIONS = 4  # for each request that is worked on, or waits


def server_of(desk: Desk, bounds: Bounds) -> uvicorn.Server:
    """A server that writes down no requests, believes no headers of a proxy, and waits
    at its end for the answers that are worked on.
    """
    return uvicorn.Server(
        uvicorn.Config(
            application(desk, bounds),
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            http="h11",
            ws="none",
            lifespan="off",
            limit_concurrency=_CONNECTIONS * (bounds.workers + bounds.waiting),
            timeout_graceful_shutdown=round(bounds.seconds) + 1,
        )
    )
