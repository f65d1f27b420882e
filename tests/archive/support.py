"""Records as they lie in a stream, and a program that archives them until it is killed."""

import hashlib
import sys
from pathlib import Path

from runlane.journal.archive import Entry, FileStore, Segment
from runlane.journal.archive.paths import segment_name
from runlane.journal.archive.segment import encode_segment

SESSION = "customer-42"


def entry(revision: int, text: str = "") -> Entry:
    data = f"{revision} {text}".encode()
    return Entry(
        stream_id=f"{revision}-7f",
        branch="main",
        parent="",
        kind="message_appended",
        digest=hashlib.sha256(data).hexdigest()[:24],
        at_ms=1_700_000_000_000 + revision,
        data=data,
    )


def entries(first: int, last: int, text: str = "") -> list[Entry]:
    return [entry(revision, text) for revision in range(first, last + 1)]


def write_segments_for_ever(root: Path) -> None:
    """Write segment after segment, and print the name of each once it is stored."""
    store = FileStore(root)
    name = None
    first = 1
    while True:
        segment = Segment(
            session_id=SESSION,
            first=first,
            last=first + 49,
            previous=name,
            entries=tuple(entries(first, first + 49, "x" * 1000)),
        )
        name = segment_name(SESSION, first, first + 49, "0" * 12)
        store.put(name, encode_segment(segment))
        print(name, flush=True)  # noqa: T201 (for the parent process)
        first += 50


if __name__ == "__main__":
    write_segments_for_ever(Path(sys.argv[1]))
