"""The service as an ASGI application."""

import json
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from taciturn import __version__
from taciturn.service.answers import Answer, Kind
from taciturn.service.bounds import Bounds
from taciturn.service.desk import Desk
from taciturn.service.gate import Gate, encoded
from taciturn.service.queries import Query, ReleaseQuery

__all__ = ["application"]

_RETRY_AFTER: Final = "1"  # seconds
_SHOWN: Final = 5  # errors of a body
_WIDTH: Final = 60  # characters of a value in an error


class Ascii(JSONResponse):
    """JSON that can always be written."""

    def render(self, content: Any) -> bytes:
        """Write the content."""
        return encoded(content)


class Once(Request):
    """A request in whose body no name is given twice: of two filters the last would be
    taken, and the other be passed over.
    """

    async def json(self) -> Any:
        """Read the body."""
        return json.loads(await self.body(), object_pairs_hook=_object)


class OnceRoute(APIRoute):
    """An address that is asked by such requests."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers."""
        answered = super().get_route_handler()

        async def answer(request: Request) -> Response:
            return await answered(Once(request.scope, request.receive))

        return answer


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise HTTPException(400, f"{twice!r:.{_WIDTH}} is given twice")
    return found


def application(desk: Desk, bounds: Bounds) -> Gate:
    """The service, behind its gate.

    There is no page of its interface, which would fetch scripts from elsewhere; what
    programs need to know of it is at ``/openapi.json``.
    """
    app = FastAPI(
        title="taciturn", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.router.route_class = OnceRoute

    async def asked(kind: Kind, **given: Any) -> Ascii:
        return _sent(await desk.ask(kind, given))

    @app.post("/check", response_class=Ascii)
    async def check(query: Query) -> Ascii:
        """Whether a table can be released after all that was released before it."""
        return await asked("check", **query.model_dump())

    @app.post("/release", response_class=Ascii)
    async def release(query: ReleaseQuery) -> Ascii:
        """Log a table as released, if it can be; once, however often this is asked."""
        return await asked("release", **query.model_dump())

    @app.get("/releases", response_class=Ascii)
    async def releases() -> Ascii:
        """What was released."""
        return await asked("releases")

    @app.get("/health", response_class=Ascii)
    async def health() -> Ascii:
        """That the service runs."""
        return _sent(Answer(200, {"status": "ok"}))

    app.add_exception_handler(RequestValidationError, _of_body)
    app.add_exception_handler(HTTPException, _of_address)
    return Gate(app, bounds)


def _sent(answer: Answer) -> Ascii:
    headers = {"Retry-After": _RETRY_AFTER} if answer.status == 503 else {}
    return Ascii(answer.content, answer.status, headers)


async def _of_address(request: Request, error: Exception) -> Ascii:
    """An address that there is not, another method, a body that is no JSON."""
    assert isinstance(error, HTTPException)
    return _sent(Answer(error.status_code, {"error": str(error.detail)}))


async def _of_body(request: Request, error: Exception) -> Ascii:
    """What is wrong in a body, where, and what it is."""
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    if any(each["type"] == "json_invalid" for each in errors):
        return _sent(Answer(400, {"error": "the body is no JSON"}))
    said = [_described(each, error.body) for each in errors[:_SHOWN]]
    if len(errors) > _SHOWN:
        said.append(f"and {len(errors) - _SHOWN:,} more")
    return _sent(Answer(422, {"error": "; ".join(said)}))


def _described(error: Any, body: Any) -> str:
    place = ".".join(part[:_WIDTH] for part in _path(error, body)) or "the body"
    given = error.get("input")
    plain = isinstance(given, str | int | float | None)
    shown = f", got {given!r:.{_WIDTH}}" if plain and error["type"] != "missing" else ""
    return f"{place}: {error['msg'].removeprefix('Value error, ')}{shown}"


def _path(error: Any, body: Any) -> Iterator[str]:
    """Where in the body an error is, without the types that pydantic tried there."""
    for part in error["loc"][1:]:
        is_there = isinstance(body, dict) and part in body
        if is_there or (isinstance(body, list) and isinstance(part, int) and part < len(body)):
            body = body[part]
            yield str(part)
        elif error["type"] == "missing":
            yield str(part)
