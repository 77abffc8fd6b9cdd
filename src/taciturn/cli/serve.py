"""``taciturn serve``: the calls of a release log over HTTP."""

from pathlib import Path

import click

from taciturn.cli.files import FileCommand, Input
from taciturn.cli.options import Number, Whole
from taciturn.files import check_readable

__all__ = ["serve"]

_MOST_PORT = 65_535
_MOST_WORKERS = 64
_MOST_SECONDS = 600


@click.command(cls=FileCommand)
@click.argument("log", type=Input(), metavar="LOG.duckdb")
@click.option(
    "--host",
    type=click.Choice(["127.0.0.1", "::1"]),
    default="127.0.0.1",
    show_default=True,
    help="The address of this machine for itself: others ask through a proxy that knows them.",
)
@click.option(
    "--port",
    type=Whole(0, _MOST_PORT),
    default=8000,
    show_default=True,
    help="The port; 0 is any that is free.",
)
@click.option(
    "--workers",
    type=Whole(1, _MOST_WORKERS),
    default=2,
    show_default=True,
    help="Requests that are worked on at once, each in a process.",
)
@click.option(
    "--time-limit",
    type=Number(0, _MOST_SECONDS, min_open=True),
    default=30.0,
    show_default=True,
    help="Seconds that a request may be worked on.",
)
def serve(log: Path, host: str, port: int, workers: int, time_limit: float) -> None:
    """Answer over HTTP what a table would give away.

    LOG.duckdb is a release log. POST /check takes a table as JSON and gives the
    verdict, POST /release also logs it if it passes, GET /releases lists what was
    released. Only programs on this machine are answered, until Ctrl-C or SIGTERM.

    Exit status: 0 done, 1 error, 2 wrong usage.
    """
    check_readable(log)
    from taciturn.service import serve as run
    from taciturn.service.bounds import Bounds

    run(
        log,
        host=host,
        port=port,
        bounds=Bounds(workers=workers, seconds=time_limit),
        started=lambda address: click.echo(f"answering at {address}, until Ctrl-C", err=True),
    )
