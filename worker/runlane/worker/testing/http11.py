"""As much of HTTP/1.1 as a model server needs: requests with a length, responses in chunks."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from msgspec import Struct

HEAD_BYTES_MAX: Final = 64 * 1024
BODY_BYTES_MAX: Final = 64 * 1024 * 1024
LAST_CHUNK: Final = b"0\r\n\r\n"


class HttpRequest(Struct, frozen=True):
    """One request; header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    keep_alive: bool


class BadRequestError(Exception):
    """Bytes that are no request, or none that is served; the connection is of no more use."""

    def __init__(self, status: int, reason: str) -> None:
        self.status = status
        super().__init__(reason)


def take_request(buffer: bytearray) -> HttpRequest | None:
    """Remove the first whole request from `buffer`; return None while there is none.

    Raises:
        BadRequestError: The bytes are no HTTP/1 request, or too many.
    """
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        if len(buffer) > HEAD_BYTES_MAX:
            raise BadRequestError(431, f"more than {HEAD_BYTES_MAX} bytes of headers")
        return None
    first, *lines = buffer[:end].decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):  # noqa: PLR2004
        raise BadRequestError(400, "not an HTTP/1 request")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    size = _body_size(headers)
    start = end + 4
    if len(buffer) < start + size:
        return None
    body = bytes(buffer[start : start + size])
    del buffer[: start + size]
    connection = headers.get("connection", "").lower()
    return HttpRequest(
        method=words[0],
        path=words[1].partition("?")[0],
        headers=headers,
        body=body,
        keep_alive=words[2] != "HTTP/1.0" and connection != "close",
    )


def _body_size(headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise BadRequestError(411, "a request body needs a content-length")
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdecimal()):
        raise BadRequestError(400, "content-length is no number")
    if (size := int(text)) > BODY_BYTES_MAX:
        raise BadRequestError(413, f"more than {BODY_BYTES_MAX} bytes of body")
    return size


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """Return status line and headers of a response."""
    known = status in HTTPStatus.__members__.values()
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase if known else ''}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def response(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """Return a whole JSON response."""
    length = {"content-type": "application/json", "content-length": str(len(body))}
    return head(status, {**length, **(headers or {})}) + body


def chunk(data: bytes) -> bytes:
    """Return `data`, not empty, as one chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)
