"""What archivers left behind goes from the store, and only that."""

from pathlib import Path
from uuid import uuid4

import pytest
from tests.archive.support import SESSION, entries

from runlane.journal.archive import Archive, ObjectStore, open_store
from runlane.journal.archive.paths import session_folder


@pytest.fixture(params=["file", "memory"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path) if request.param == "file" else f"memory://{uuid4().hex}/store")


def test_an_object_is_removed_once(objects: ObjectStore) -> None:
    for path in ("ab/one", "ab/two"):
        objects.put(path, b"1")
    objects.remove("ab/one")
    objects.remove("ab/one")
    objects.remove("none/at-all")
    assert objects.names("ab") == ["ab/two"]


async def test_what_the_chain_does_not_name_is_removed(objects: ObjectStore) -> None:
    archive = Archive(objects)
    early = await archive.write(SESSION, entries(3, 5), previous=None)
    left = [await archive.write(SESSION, entries(3, 4), previous=None)]
    last = await archive.write(SESSION, entries(6, 9), previous=early)
    left += [
        await archive.write(SESSION, entries(6, 9), previous=early),
        await archive.write(SESSION, entries(10, 12), previous=last),
    ]
    await archive.put_blob(SESSION, "0" * 64, b"much")
    assert await Archive(objects).sweep(SESSION, last) == len(left)
    assert objects.names(session_folder(SESSION)) == sorted([early, last])
    assert await archive.sweep(SESSION, last) == 0
    assert len(objects.names(f"{session_folder(SESSION)}/blobs")) == 1


async def test_without_a_chain_everything_was_left(objects: ObjectStore) -> None:
    archive = Archive(objects)
    assert await archive.sweep(SESSION, None) == 0
    await archive.write(SESSION, entries(1, 4), previous=None)
    assert await archive.sweep(SESSION, None) == 1
    assert objects.names(session_folder(SESSION)) == []


async def test_a_lost_segment_does_not_stop_it(objects: ObjectStore) -> None:
    """What is lost is told to who reads it; the rest of the session is still archived."""
    archive = Archive(objects)
    first = await archive.write(SESSION, entries(1, 4), previous=None)
    last = await archive.write(SESSION, entries(5, 6), previous=first)
    objects.remove(first)
    assert await Archive(objects).sweep(SESSION, last) == 0
    assert objects.names(session_folder(SESSION)) == [last]
