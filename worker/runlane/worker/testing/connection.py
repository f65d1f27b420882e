"""One connection to the scripted model: requests in, replies out, one after the other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec import Struct

from runlane.worker.testing.http11 import BadRequestError, HttpRequest, response, take_request
from runlane.worker.testing.rendering import encode, error_object, parts_of
from runlane.worker.testing.script import ChatRequest, Reply

if TYPE_CHECKING:
    from runlane.worker.testing.model_server import ModelServer

PATH: Final = "/v1/chat/completions"


class _StreamOptions(Struct):
    include_usage: bool = False


class _Body(Struct):
    model: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None
    stream: bool = False
    stream_options: _StreamOptions | None = None


_body_decoder: Final = msgspec.json.Decoder(_Body)


class Connection(asyncio.Protocol):
    """Answers at once where it can, and in a task where a reply takes time."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._slow_reply: asyncio.Task[None] | None = None
        self._lost = asyncio.Event()

    async def abort(self) -> None:
        """Close the connection, whatever is going on."""
        self._transport.abort()
        await self._lost.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register with the server."""
        self._transport = cast("asyncio.Transport", transport)
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the reply that nobody waits for any more."""
        del exc
        self._server.connections.discard(self)
        if self._slow_reply is not None:
            self._server.abandoned += 1
            self._slow_reply.cancel()
        self._lost.set()

    def data_received(self, data: bytes) -> None:
        """Answer what is complete."""
        self._buffer += data
        self._serve()

    def _serve(self) -> None:
        try:
            while self._slow_reply is None and not self._transport.is_closing():
                request = take_request(self._buffer)
                if request is None:
                    return
                self._answer(request)
        except BadRequestError as error:
            self._refuse(error.status, str(error), stays_open=False)

    def _answer(self, request: HttpRequest) -> None:
        if (request.method, request.path) != ("POST", PATH):
            self._refuse(404, f"only POST {PATH} is served", stays_open=request.keep_alive)
            return
        try:
            body = _body_decoder.decode(request.body)
            asked = ChatRequest(body.model, body.messages, body.tools or [], request.headers)
            self._server.requests.append(asked)
            reply = self._server.script(asked)
        except (ValueError, msgspec.DecodeError) as error:
            self._refuse(400, str(error), stays_open=request.keep_alive)
            return
        usage = not body.stream or bool(body.stream_options and body.stream_options.include_usage)
        parts = parts_of(asked, reply, stream=body.stream, include_usage=usage)
        stays_open = request.keep_alive and reply.fault != "reset"
        if reply.fault == "hang" or reply.delay_s or reply.chunk_delay_s:
            sending = self._send_slowly(parts, reply, stays_open=stays_open)
            self._slow_reply = asyncio.get_running_loop().create_task(sending)
        else:
            self._transport.write(b"".join(parts))
            self._end(stays_open=stays_open)

    async def _send_slowly(self, parts: list[bytes], reply: Reply, *, stays_open: bool) -> None:
        await asyncio.sleep(reply.delay_s)
        if reply.fault == "hang":
            await self._lost.wait()
        for n, part in enumerate(parts):
            await asyncio.sleep(reply.chunk_delay_s if n else 0)
            self._transport.write(part)
        self._slow_reply = None
        self._end(stays_open=stays_open)
        self._serve()

    def _refuse(self, status: int, reason: str, *, stays_open: bool) -> None:
        body = encode({"error": error_object(reason, "bad_request")})
        self._transport.write(response(status, body))
        self._end(stays_open=stays_open)

    def _end(self, *, stays_open: bool) -> None:
        if not stays_open:
            self._transport.close()
