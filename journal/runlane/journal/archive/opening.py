"""From a setting to a store."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from runlane.journal.archive.store import FileStore, ObjectStore
from runlane.journal.errors import InvalidInputError


def open_store(url_or_path: str) -> ObjectStore:
    """Return the store that RUNLANE_ARCHIVE names; nothing is read or written yet.

    Args:
        url_or_path: A folder, as a path or a `file:` URL, or another URL that fsspec knows.

    Raises:
        InvalidInputError: The scheme is unknown, or a package for it is not installed.
    """
    if url_or_path.startswith(("file:", "local:")):  # fsspec's own files are not durable
        return FileStore(_folder_of(url_or_path))
    scheme, separator, _ = url_or_path.partition("://")
    if not (scheme and separator):
        return FileStore(Path(url_or_path).expanduser())
    # The URL may hold a password, and so may what is said of it: neither is quoted.
    try:
        from runlane.journal.archive.fsspec_store import (  # noqa: PLC0415 (an extra)
            FsspecStore,
        )

        return FsspecStore(url_or_path)
    except ImportError as error:
        raise InvalidInputError(
            f"RUNLANE_ARCHIVE: a package for {scheme}:// is not installed ({error}); "
            "pip install 'runlane[archive]' and fsspec's package for that kind of store"
        ) from error
    except ValueError:
        raise InvalidInputError(
            f"RUNLANE_ARCHIVE: fsspec (runlane[archive]) knows no {scheme}:// or cannot read the "
            "rest of the URL; give a path, or a URL such as s3://bucket/folder"
        ) from None


def _folder_of(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise InvalidInputError(
            "RUNLANE_ARCHIVE names a host; for a folder write file:///folder, or just its path"
        )
    return Path(unquote(parts.path))
