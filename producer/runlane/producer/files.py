"""Files as a caller names them: by a path, or opened for bytes. All calls block."""

import codecs
import os
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from runlane.journal.errors import JournalFormatError

LINE_BYTES_MAX: Final = 16 * 1024 * 1024

NAME_LENGTH_KEPT: Final = 50
"""Of a file's name in that of its unfinished one: file systems take 255 bytes."""

Place = str | Path | BinaryIO
"""A path, or a file that is open for bytes."""

Progress = Callable[[int, int], None]
"""Called with how many records are done, and of how many."""


@contextmanager
def opened(source: Place) -> Generator[BinaryIO, None, None]:
    """Open a file to be read, if it is not open.

    Raises:
        OSError: It cannot be opened.
    """
    if isinstance(source, str | Path):
        with Path(source).open("rb") as file:
            yield file
    else:
        yield source


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file, never more than `LINE_BYTES_MAX` at once.

    A byte order mark at its beginning is left out.

    Raises:
        JournalFormatError: A line is longer.
        OSError: The file cannot be read.
    """
    number = 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        if len(line) > LINE_BYTES_MAX:
            raise JournalFormatError(f"the line has more than {LINE_BYTES_MAX} bytes", line=number)
        yield line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


class NewFile:
    """A file that is written: one at a path appears there only once it is complete.

    It is readable for its owner only, and takes the place of an older one. Unfinished, it stands
    beside that place as `.<name>.<random>.part`. A device or a pipe is written to as it is. It may
    be abandoned from one thread while another, whose caller was cancelled, still works on it.

    Raises:
        OSError: It cannot be written; so do all methods.
    """

    def __init__(self, target: Place) -> None:
        self.size = 0
        self._busy = threading.Lock()
        self._unfinished = ExitStack()
        self._place: tuple[str, Path] | None = None
        if not isinstance(target, str | Path):
            self._file = target
            return
        path = Path(target).resolve()
        if path.exists() and not path.is_file():
            self._file = self._unfinished.enter_context(path.open("wb"))
            return
        prefix = f".{path.name[:NAME_LENGTH_KEPT]}."
        descriptor, name = tempfile.mkstemp(".part", prefix=prefix, dir=path.parent)
        self._unfinished.callback(os.unlink, name)
        self._file = self._unfinished.enter_context(os.fdopen(descriptor, "wb"))
        self._place = name, path

    def write(self, data: bytes) -> None:
        """Write further bytes."""
        with self._busy:
            self._file.write(data)
            self.size += len(data)

    def finish(self) -> None:
        """Bring it to the disk, and a file at a path to its place."""
        with self._busy:
            self._file.flush()
            if self._place is not None:
                os.fsync(self._file.fileno())
                self._file.close()
                os.replace(*self._place)
                self._unfinished.pop_all()

    def abandon(self) -> None:
        """Remove what was not finished."""
        with self._busy:
            self._unfinished.close()
