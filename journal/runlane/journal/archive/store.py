"""Objects by path: what an archive needs of a store, and a store of files."""

import os
import shutil
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Protocol

from runlane.journal.archive.paths import check_path
from runlane.journal.errors import ArchiveMissingError

_FOLDER_MODE: Final = 0o700
_UNFINISHED: Final = ".part"


class ObjectStore(Protocol):
    """Bytes by relative POSIX path. Calls block, may come from any thread, and never tear.

    A path that leads out of the store or has a part that begins with a dot raises
    InvalidInputError. What the medium reports (OSError and the like) is passed on as it is.
    """

    def put(self, path: str, data: bytes) -> None:
        """Store an object, in the place of an older one; it is durable when this returns."""
        ...

    def get(self, path: str, *, limit: int | None = None) -> bytes:
        """Return the bytes of an object, or only the first `limit` of them.

        Raises:
            ArchiveMissingError: There is none.
        """
        ...

    def names(self, folder: str) -> list[str]:
        """Return the paths of the objects in a folder, sorted, without those in folders in it."""
        ...

    def remove(self, path: str) -> None:
        """Remove an object; nothing happens if there is none."""
        ...

    def remove_tree(self, folder: str) -> None:
        """Remove a folder with all that is in it; nothing happens if there is none."""
        ...


class FileStore:
    """A store of files below one folder, for one host or a shared file system.

    An object is written beside its place and renamed once it is on the disk. Files are readable
    for their owner only. What a killed process left unfinished is not seen, and goes with its
    folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, path: str, data: bytes) -> None:
        """Store an object, in the place of an older one; it is durable when this returns."""
        target = self._root / check_path(path)
        _make_folder(target.parent)
        descriptor, unfinished = tempfile.mkstemp(_UNFINISHED, prefix=".", dir=target.parent)
        with ExitStack() as on_failure:
            on_failure.callback(os.unlink, unfinished)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, target)
            on_failure.pop_all()
        # Up to the root: another process may have made a folder and not brought it to disk yet.
        for folder in target.parents:
            _sync_folder(folder)
            if folder == self._root:
                break

    def get(self, path: str, *, limit: int | None = None) -> bytes:
        """Return the bytes of an object, or only the first `limit` of them.

        Raises:
            ArchiveMissingError: There is none.
        """
        try:
            with (self._root / check_path(path)).open("rb") as file:
                return file.read(-1 if limit is None else limit)
        except FileNotFoundError as error:
            raise ArchiveMissingError(path) from error

    def names(self, folder: str) -> list[str]:
        """Return the paths of the objects in a folder, sorted, without those in folders in it."""
        with suppress(FileNotFoundError), os.scandir(self._root / check_path(folder)) as found:
            return sorted(
                f"{folder}/{each.name}"
                for each in found
                if each.is_file() and not each.name.startswith(".")
            )
        return []

    def remove(self, path: str) -> None:
        """Remove an object; nothing happens if there is none."""
        with suppress(FileNotFoundError):
            (self._root / check_path(path)).unlink()

    def remove_tree(self, folder: str) -> None:
        """Remove a folder with all that is in it; nothing happens if there is none."""
        target = self._root / check_path(folder)
        while target.exists():
            with suppress(FileNotFoundError):  # another process may remove it as well
                shutil.rmtree(target)
        with suppress(FileNotFoundError):
            _sync_folder(target.parent)


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(_FOLDER_MODE, exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
