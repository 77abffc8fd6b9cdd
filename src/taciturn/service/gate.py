"""What comes before a request is read: from whom it may come, and how long it may
be.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final

from taciturn.service.bounds import Bounds

__all__ = ["Gate", "encoded"]

type Message = MutableMapping[str, Any]
type Receive = Callable[[], Awaitable[Message]]
type Send = Callable[[Message], Awaitable[None]]
type Application = Callable[[Message, Receive, Send], Awaitable[None]]

_HOSTS: Final = frozenset({"127.0.0.1", "[::1]", "localhost"})
_JSON: Final = "application/json"


def encoded(content: Any) -> bytes:
    """JSON in ASCII, whatever text somebody sends."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class Gate:
    """Refuses what comes by another name than that of this machine, as the pages of
    other sites in a browser do; bodies that are no JSON, too long or too slow.

    Parameters
    ----------
    inner : ASGI application
        What takes the others, with their body in one piece.
    bounds : Bounds
        How long a body may be, and may take.
    """

    def __init__(self, inner: Application, bounds: Bounds) -> None:
        self._inner, self._bounds = inner, bounds

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Refuse a request, or hand it on."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        send = _unstored(send)
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        kind = headers.get(b"content-type", "").partition(";")[0].strip().lower()
        if name.lower() not in _HOSTS:
            message = f"the host must be one of {', '.join(sorted(_HOSTS))}, got {host!r:.80}"
            await _refuse(send, 421, message)
        elif scope["method"] == "POST" and (kind != _JSON or b"content-encoding" in headers):
            got = headers.get(b"content-encoding", kind)
            await _refuse(send, 415, f"the body must be {_JSON}, not encoded, got {got!r:.80}")
        else:
            await self._with_body(scope, receive, send)

    async def _with_body(self, scope: Message, receive: Receive, send: Send) -> None:
        parts: list[bytes] = []
        length = 0
        try:
            async with asyncio.timeout(self._bounds.patience):
                while True:
                    message = await receive()
                    if message["type"] != "http.request":
                        return  # nobody is there any more
                    parts.append(message.get("body", b""))
                    length += len(parts[-1])
                    if length > self._bounds.most_bytes:
                        most = f"{self._bounds.most_bytes:,}"
                        await _refuse(send, 413, f"the body may have {most} bytes, it has more")
                        return
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            waited = f"the body was not complete after {self._bounds.patience:g} seconds"
            await _refuse(send, 408, waited)
            return
        whole: list[Message] = [{"type": "http.request", "body": b"".join(parts)}]

        async def again() -> Message:
            return whole.pop() if whole else await receive()

        await self._inner(scope, again, send)


def _unstored(send: Send) -> Send:
    """Send, with the word that nobody keeps the answer: it holds counts."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message["headers"], (b"cache-control", b"no-store")]
            message = {**message, "headers": headers}
        await send(message)

    return sent


async def _refuse(send: Send, status: int, message: str) -> None:
    """Answer, and close the connection: more of the body may come."""
    body = encoded({"error": message})
    headers: Iterable[tuple[bytes, bytes]] = [
        (b"content-type", _JSON.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})
