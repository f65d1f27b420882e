"""The archive: chains of segments, blobs, the claim of a store, and stores that fail."""

import asyncio
import hashlib
import threading
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.archive.support import SESSION, entries

from runlane.journal.archive import Archive, Entry, FileStore, ObjectStore, open_store
from runlane.journal.archive import archive as archive_module
from runlane.journal.archive.cache import Cache
from runlane.journal.archive.paths import session_folder
from runlane.journal.errors import (
    ArchiveDamagedError,
    ArchiveError,
    ArchiveMissingError,
    InvalidInputError,
)


class CountingStore(FileStore):
    """Counts what is read whole, and what only in part."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.whole = 0
        self.partial = 0

    def get(self, path: str, *, limit: int | None = None) -> bytes:
        if limit is None:
            self.whole += 1
        else:
            self.partial += 1
        return super().get(path, limit=limit)


async def chain_of(archive: Archive, sizes: list[int], *, first: int = 1) -> list[str]:
    """Write segments with so many records each; return their names, oldest first."""
    names: list[str] = []
    for size in sizes:
        found = entries(first, first + size - 1)
        names.append(await archive.write(SESSION, found, previous=names[-1] if names else None))
        first += size
    return names


def revisions(found: list[Entry]) -> list[int]:
    return [each.revision for each in found]


@pytest.fixture
def archive(store: ObjectStore) -> Archive:
    return Archive(store)


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=6),
    first=st.integers(1, 4),
    after=st.integers(0, 40),
    upto=st.integers(0, 40),
    count=st.integers(1, 40),
)
async def test_any_range_is_read_in_either_direction(
    sizes: list[int], first: int, after: int, upto: int, count: int
) -> None:
    store = open_store(f"memory://{uuid4().hex}")
    last_segment = (await chain_of(Archive(store), sizes, first=first))[-1]
    archive = Archive(store)
    stored = entries(first, first + sum(sizes) - 1)

    forward = [each for each in stored if after < each.revision <= upto][:count]
    assert forward == await archive.read_forward(
        SESSION, last_segment, after=after, upto=upto, count=count
    )
    backward = [each for each in reversed(stored) if each.revision <= upto][:count]
    assert backward == await archive.read_backward(
        SESSION, last_segment, from_revision=upto, count=count
    )


async def test_a_segment_that_the_chain_does_not_name_is_never_read(
    archive: Archive, store: ObjectStore
) -> None:
    first = await archive.write(SESSION, entries(1, 3), previous=None)
    overtaken = await archive.write(SESSION, entries(4, 6, "lost"), previous=first)
    last = await archive.write(SESSION, entries(4, 5, "kept"), previous=first)
    await archive.write(SESSION, entries(1, 9, "lost"), previous=None)
    assert overtaken in store.names(session_folder(SESSION))
    found = await Archive(store).read_forward(SESSION, last, after=0, upto=9, count=99)
    assert found == [*entries(1, 3), *entries(4, 5, "kept")]


async def test_only_what_lies_before_a_missing_segment_is_out_of_reach(tmp_path: Path) -> None:
    names = await chain_of(Archive(FileStore(tmp_path)), [2, 2, 2, 2])
    (tmp_path / names[1]).unlink()
    archive = Archive(FileStore(tmp_path))
    found = await archive.read_backward(SESSION, names[-1], from_revision=8, count=4)
    assert revisions(found) == [8, 7, 6, 5]
    with pytest.raises(ArchiveMissingError, match=names[1]):
        await archive.read_backward(SESSION, names[-1], from_revision=8, count=5)
    with pytest.raises(ArchiveMissingError, match=names[1]):
        await archive.read_forward(SESSION, names[-1], after=0, upto=1, count=1)


async def test_damage_is_found_when_it_is_read(tmp_path: Path) -> None:
    names = await chain_of(Archive(FileStore(tmp_path)), [2, 2, 2])
    damaged = tmp_path / names[1]
    damaged.write_bytes(damaged.read_bytes().replace(b'"main"', b'"mean"', 1))
    archive = Archive(FileStore(tmp_path))
    found = await archive.read_forward(SESSION, names[-1], after=0, upto=2, count=9)
    assert revisions(found) == [1, 2]
    with pytest.raises(ArchiveDamagedError, match=f"{names[1]}, line 4"):
        await archive.read_forward(SESSION, names[-1], after=2, upto=3, count=9)


async def test_a_long_chain_is_walked_once_and_by_its_headers(tmp_path: Path) -> None:
    names = await chain_of(Archive(FileStore(tmp_path)), [2] * 500)
    store = CountingStore(tmp_path)
    archive = Archive(store)
    assert revisions(
        await archive.read_forward(SESSION, names[-1], after=1, upto=1000, count=1)
    ) == [2]
    assert (store.whole, store.partial) == (1, 499)
    for revision in (500, 2, 999, 501):
        found = await archive.read_backward(SESSION, names[-1], from_revision=revision, count=1)
        assert revisions(found) == [revision]
    assert (store.whole, store.partial) == (4, 499)


async def test_what_is_kept_in_memory_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = await chain_of(Archive(FileStore(tmp_path)), [1] * 6)
    monkeypatch.setattr(archive_module, "SEGMENT_BYTES", 3 * (archive_module.ENTRY_BYTES + 10))
    monkeypatch.setattr(archive_module, "LINKS", 2)
    store = CountingStore(tmp_path)
    archive = Archive(store)
    for _ in range(2):
        found = await archive.read_forward(SESSION, names[-1], after=0, upto=6, count=6)
        assert revisions(found) == [1, 2, 3, 4, 5, 6]
    assert store.whole == 12
    await archive.read_backward(SESSION, names[-1], from_revision=6, count=3)
    assert store.whole == 12


def test_a_cache_drops_what_was_used_longest_ago() -> None:
    cache = Cache[str](10)
    for key in ("a", "b", "c"):
        cache.put(key, key.upper(), weight=3)
    assert cache.get("a") == "A"
    cache.put("d", "D", weight=4)
    assert [cache.get(key) for key in "abcd"] == ["A", None, "C", "D"]
    cache.put("d", "d", weight=3)
    cache.put("huge", "H", weight=11)
    assert [cache.get(key) for key in ("a", "c", "d", "huge")] == ["A", "C", "d", None]


async def test_records_with_a_gap_before_them_are_refused(
    archive: Archive, store: ObjectStore
) -> None:
    first = await archive.write(SESSION, entries(1, 3), previous=None)
    with pytest.raises(InvalidInputError, match="revision 5 does not follow"):
        await archive.write(SESSION, entries(5, 6), previous=first)
    assert store.names(session_folder(SESSION)) == [first]


async def test_the_segment_of_another_session_is_refused(archive: Archive) -> None:
    name = await archive.write(SESSION, entries(1, 3), previous=None)
    with pytest.raises(InvalidInputError, match="no segment of session 'another'"):
        await archive.read_forward("another", name, after=0, upto=3, count=3)


async def test_a_removed_session_leaves_nothing_and_others_stay(
    archive: Archive, store: ObjectStore
) -> None:
    name = await archive.write(SESSION, entries(1, 3), previous=None)
    other = await archive.write("other", entries(1, 3), previous=None)
    digest = hashlib.sha256(b"large").hexdigest()
    await archive.put_blob(SESSION, digest, b"large")
    for _ in range(2):
        await archive.remove(SESSION)
    with pytest.raises(ArchiveMissingError, match=name):
        await Archive(store).read_forward(SESSION, name, after=0, upto=3, count=3)
    with pytest.raises(ArchiveMissingError, match=digest):
        await archive.get_blob(SESSION, digest)
    assert await archive.read_forward("other", other, after=0, upto=3, count=3) == entries(1, 3)


async def test_a_blob_is_proved_by_its_digest(archive: Archive) -> None:
    data = bytes(range(256)) * 100
    digest = hashlib.sha256(data).hexdigest()
    for _ in range(2):
        await archive.put_blob(SESSION, digest, data)
    assert await archive.get_blob(SESSION, digest) == data
    await archive.put_blob(SESSION, digest, data[:-1])
    with pytest.raises(ArchiveDamagedError, match=digest):
        await archive.get_blob(SESSION, digest)
    with pytest.raises(InvalidInputError):
        await archive.get_blob(SESSION, "../" * 3 + "deployment")


async def test_a_store_belongs_to_the_deployment_that_claimed_it_first(
    archive: Archive, store: ObjectStore
) -> None:
    assert await archive.deployment() is None
    assert await archive.claim("one") == "one"
    assert await Archive(store).claim("two") == "one"
    assert await Archive(store).claim("one") == "one"
    assert await archive.deployment() == "one"


async def test_a_store_that_fails_is_told_as_an_error_of_the_archive(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    archive = Archive(FileStore(tmp_path / "file"))
    with pytest.raises(ArchiveError, match=r"cannot be used.*RUNLANE_ARCHIVE"):
        await archive.write(SESSION, entries(1, 1), previous=None)


async def test_a_store_that_hangs_holds_up_its_own_callers_only(tmp_path: Path) -> None:
    released = threading.Event()

    class HangingStore(FileStore):
        def get(self, path: str, *, limit: int | None = None) -> bytes:
            released.wait()
            return super().get(path, limit=limit)

    archive = Archive(HangingStore(tmp_path), deadline_s=0.05)
    calls = [archive.get_blob(SESSION, "0" * 64) for _ in range(40)]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert all("did not answer within 0.05 s" in str(each) for each in results)
    assert await asyncio.to_thread(lambda: "free") == "free"
    released.set()
    with pytest.raises(ArchiveMissingError):
        await Archive(FileStore(tmp_path)).get_blob(SESSION, "0" * 64)
