"""Names of another system as names here, and the other way round. Equal names give equal names."""

import hashlib
import re

from runlane.journal.errors import InvalidInputError
from runlane.journal.ids import check_id, check_run_id


def journal_file_name(session_id: str) -> str:
    """Return the name of the file in which EJAgent keeps a session."""
    return hashlib.sha256(session_id.strip().encode()).hexdigest() + ".jsonl"


def run_id_of(file_id: str) -> str:
    """Return a UUID in its canonical form, another id as it is, and a UUID for any other name."""
    if is_uuid(file_id):
        return check_run_id(file_id)
    try:
        return check_id("run id", file_id)
    except InvalidInputError:
        return check_run_id(derived_uuid(file_id))


def is_uuid(file_id: str) -> bool:
    """Return whether an id is a UUID, in whatever form."""
    try:
        check_run_id(file_id)
    except InvalidInputError:
        return False
    return True


def branch_id_of(file_name: str) -> str:
    """Return a branch name as it is or, where it is none here, a similar one with a digest."""
    try:
        return check_id("branch", file_name)
    except InvalidInputError:
        digest = hashlib.sha256(file_name.encode()).hexdigest()[:12]
        return re.sub(r"[^A-Za-z0-9._:-]+", "-", file_name)[:100] + f"-{digest}"


def derived_uuid(*parts: str) -> str:
    """Return 32 hexadecimal digits of the form of a version 4 UUID (RFC 9562, 5.4)."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    value = int.from_bytes(digest[:16], "big")
    value = value & ~(0xF << 76) | 0x4 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return f"{value:032x}"
