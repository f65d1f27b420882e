"""Where things lie in an archive: relative POSIX paths, and what they say."""

import hashlib
import re
from typing import Final

from msgspec import Struct

from runlane.journal.errors import InvalidInputError

MARKER: Final = "deployment"
"""The object that names the deployment whose archive it is."""

_PART: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
"""No dot at the beginning: neither `..` nor what stores keep for themselves can be named."""

_SEGMENT: Final = re.compile(
    r"([0-9a-f]{2}/[0-9a-f]{64})/([1-9][0-9]{0,18})-([1-9][0-9]{0,18})-[0-9a-f]{12}\.jsonl"
)


class SegmentName(Struct, frozen=True):
    """What the name of a segment says.

    Attributes:
        folder: The session's folder.
        first: Its first revision.
        last: Its last revision.
    """

    folder: str
    first: int
    last: int


def check_path(path: str) -> str:
    """Return `path` if it may name an object or a folder.

    Raises:
        InvalidInputError: It is not of the form `a/b/c`, or has a part that begins with a dot.
    """
    if not all(_PART.fullmatch(part) for part in path.split("/")):
        raise InvalidInputError(f"{path!r} is no path in an archive")
    return path


def session_folder(session_id: str) -> str:
    """Return the folder that holds all that is archived of a session."""
    digest = hashlib.sha256(session_id.encode()).hexdigest()
    return f"{digest[:2]}/{digest}"


def segment_name(session_id: str, first: int, last: int, nonce: str) -> str:
    """Return the path of a segment, which is its name.

    Args:
        session_id: The session.
        first: Its first revision.
        last: Its last revision.
        nonce: 12 hexadecimal digits; two writers of the same revisions never share a name.
    """
    return f"{session_folder(session_id)}/{first}-{last}-{nonce}.jsonl"


def parse_segment_name(name: str) -> SegmentName:
    """Return what a segment's name says.

    Raises:
        InvalidInputError: It is no segment's name.
    """
    found = _SEGMENT.fullmatch(name)
    if found is None or int(found[2]) > int(found[3]):
        raise InvalidInputError(f"{name!r} is no name of a segment")
    return SegmentName(found[1], int(found[2]), int(found[3]))


def blob_path(session_id: str, digest: str) -> str:
    """Return the path of a blob; `digest` is the SHA-256 of its bytes in hexadecimal digits."""
    return f"{session_folder(session_id)}/blobs/{digest}"
