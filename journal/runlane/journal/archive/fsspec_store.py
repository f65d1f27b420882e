"""A store that fsspec reaches: S3, Google Cloud Storage, Azure and others."""

from typing import Any, cast

import fsspec.core  # type: ignore[import-untyped]

from runlane.journal.archive.paths import check_path
from runlane.journal.errors import ArchiveMissingError


class FsspecStore:
    """A store at an fsspec URL.

    It is as atomic and durable as the puts of what is behind the URL: object stores are, plain
    file transfer (FTP, SFTP) is not. Credentials are that library's own affair, from its
    environment variables and files.
    """

    def __init__(self, url: str) -> None:
        """Open the store.

        Raises:
            ValueError: fsspec does not know the scheme of the URL.
            ImportError: The package for that kind of store is not installed.
        """
        # Other processes write too, so no listing may be remembered.
        self._files, root = cast("Any", fsspec.core).url_to_fs(url, use_listings_cache=False)
        self._root: str = root.rstrip("/")

    def put(self, path: str, data: bytes) -> None:
        """Store an object, in the place of an older one."""
        self._files.pipe_file(self._at(path), data)

    def get(self, path: str, *, limit: int | None = None) -> bytes:
        """Return the bytes of an object, or only the first `limit` of them.

        Raises:
            ArchiveMissingError: There is none.
        """
        try:
            data: bytes = self._files.cat_file(self._at(path), end=limit)
        except FileNotFoundError as error:
            raise ArchiveMissingError(path) from error
        return data

    def names(self, folder: str) -> list[str]:
        """Return the paths of the objects in a folder, sorted, without those in folders in it."""
        found: list[str] = self._files.find(self._at(folder), maxdepth=1)
        return sorted(path.removeprefix(f"{self._root}/") for path in found)

    def remove(self, path: str) -> None:
        """Remove an object; nothing happens if there is none."""
        try:
            self._files.rm_file(self._at(path))
        except FileNotFoundError:
            return

    def remove_tree(self, folder: str) -> None:
        """Remove a folder with all that is in it; nothing happens if there is none."""
        try:
            self._files.rm(self._at(folder), recursive=True)
        except FileNotFoundError:
            return

    def _at(self, path: str) -> str:
        return f"{self._root}/{check_path(path)}"
