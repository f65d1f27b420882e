"""Server-sent events, the way that model providers write them."""


class SseDecoder:
    """Turns bytes, cut anywhere, into the data of events.

    Understands LF, CRLF and CR, comments, data over several lines, and `data:` without a space.
    An event without data is no event. Names and ids of events are dropped.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of each event that ends within `chunk`."""
        lines = (self._rest + chunk).splitlines(keepends=True)
        # A CR at the very end may be half of a CRLF.
        self._rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        return [data for line in lines if (data := self._take(line.rstrip(b"\r\n")))]

    def finish(self) -> list[bytes]:
        """Return the event that the end of the stream completes, if there is one."""
        self._take(self._rest.rstrip(b"\r\n"))
        self._rest = b""
        return [data] if (data := self._take(b"")) else []

    def _take(self, line: bytes) -> bytes | None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line:
            data, self._data = b"\n".join(self._data), []
            return data
        return None
