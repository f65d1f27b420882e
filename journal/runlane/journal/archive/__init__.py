"""Where journals go that are too old for the server: immutable segments in an object store."""

from runlane.journal.archive.archive import Archive
from runlane.journal.archive.opening import open_store
from runlane.journal.archive.segment import Entry, Segment
from runlane.journal.archive.store import FileStore, ObjectStore

__all__ = ["Archive", "Entry", "FileStore", "ObjectStore", "Segment", "open_store"]
