"""Stores of objects, on real files and through fsspec."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.archive import support
from tests.archive.support import SESSION

from runlane.journal.archive import FileStore, ObjectStore, open_store
from runlane.journal.archive.fsspec_store import FsspecStore
from runlane.journal.archive.paths import session_folder
from runlane.journal.archive.segment import decode_segment
from runlane.journal.errors import ArchiveMissingError, InvalidInputError


def test_an_object_is_what_was_put_last(store: ObjectStore) -> None:
    store.put("ab/cd/one", b"first")
    store.put("ab/cd/one", b"\0second")
    store.put("ab/cd/empty", b"")
    assert store.get("ab/cd/empty") == b""
    assert store.get("ab/cd/one") == b"\0second"
    assert store.get("ab/cd/one", limit=3) == b"\0se"
    assert store.get("ab/cd/one", limit=300) == b"\0second"


def test_what_is_not_there_is_named(store: ObjectStore) -> None:
    store.put("ab/one", b"1")
    for path in ("ab/two", "cd/one"):
        with pytest.raises(ArchiveMissingError, match=path):
            store.get(path)


def test_names_are_the_objects_of_one_folder(store: ObjectStore) -> None:
    for path in ("ab/two", "ab/one", "ab/cd/three", "abc/four"):
        store.put(path, b"1")
    assert store.names("ab") == ["ab/one", "ab/two"]
    assert store.names("ab/cd") == ["ab/cd/three"]
    assert store.names("none") == []


def test_a_removed_tree_is_gone_and_its_neighbours_stay(store: ObjectStore) -> None:
    for path in ("ab/cd/one", "ab/cd/blobs/two", "ab/ce/three"):
        store.put(path, b"1")
    store.remove_tree("ab/cd")
    store.remove_tree("ab/cd")
    store.remove_tree("none")
    assert store.names("ab/cd") == store.names("ab/cd/blobs") == []
    assert store.names("ab/ce") == ["ab/ce/three"]
    store.put("ab/cd/one", b"2")
    assert store.get("ab/cd/one") == b"2"


@pytest.mark.parametrize(
    "path", ["", "/etc/passwd", "../x", "a/../x", "a/./x", "a//x", "a/", "a\\..\\x", "a\0", ".a"]
)
def test_no_path_leads_out_of_the_store(store: ObjectStore, path: str) -> None:
    with pytest.raises(InvalidInputError, match="is no path in an archive"):
        store.put(path, b"1")
    with pytest.raises(InvalidInputError):
        store.get(path)
    with pytest.raises(InvalidInputError):
        store.names(path)
    with pytest.raises(InvalidInputError):
        store.remove_tree(path)


def test_files_and_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    FileStore(tmp_path / "store").put("ab/one", b"1")
    modes = {
        str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode)
        for path in tmp_path.rglob("*")
    }
    assert modes == {"store": 0o700, "store/ab": 0o700, "store/ab/one": 0o600}


def test_bytes_are_on_disk_before_the_name_and_the_name_before_put_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int]] = []
    fsync, replace = os.fsync, os.replace

    def recorded_fsync(descriptor: int) -> None:
        calls.append(("fsync", os.fstat(descriptor).st_ino))
        fsync(descriptor)

    def recorded_replace(source: str, target: Path) -> None:
        calls.append(("replace", Path(source).stat().st_ino))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(os, "replace", recorded_replace)
    FileStore(tmp_path / "deep" / "store").put("ab/cd/one", b"1")

    def inode(path: str) -> int:
        return (tmp_path / path).stat().st_ino

    written = calls.index(("fsync", inode("deep/store/ab/cd/one")))
    parents_of_new_folders = [inode(path) for path in ("", "deep", "deep/store", "deep/store/ab")]
    assert calls[:written] == [("fsync", each) for each in parents_of_new_folders]
    assert calls[written + 1 :] == [
        ("replace", inode("deep/store/ab/cd/one")),
        *(("fsync", inode(path)) for path in ("deep/store/ab/cd", "deep/store/ab", "deep/store")),
    ]


def test_a_put_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(tmp_path)
    store.put("ab/one", b"before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        store.put("ab/one", b"after")
    assert store.get("ab/one") == b"before"
    assert os.listdir(tmp_path / "ab") == ["one"]


def test_a_writer_that_is_killed_leaves_whole_segments_only(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    for acknowledged in (1, 7, 20):
        with subprocess.Popen(
            [sys.executable, support.__file__, tmp_path], stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            stored = [writer.stdout.readline().strip() for _ in range(acknowledged)]
            writer.kill()
            stored += writer.stdout.read().split("\n")[:-1]
        names = store.names(session_folder(SESSION))
        assert set(stored) <= set(names)
        for name in names:
            decode_segment(name, store.get(name))
        store.remove_tree(session_folder(SESSION))
        assert list(tmp_path.rglob("*.*")) == []


def test_a_reader_beside_a_writer_sees_whole_objects_only(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    seen: set[str] = set()
    with subprocess.Popen(
        [sys.executable, support.__file__, tmp_path], stdout=subprocess.DEVNULL
    ) as writer:
        while len(seen) < 30:
            assert writer.poll() is None
            for name in set(store.names(session_folder(SESSION))) - seen:
                decode_segment(name, store.get(name))
                seen.add(name)
        writer.kill()


def test_a_path_or_a_file_url_is_a_folder(tmp_path: Path) -> None:
    for place in (f"{tmp_path}/a b", f"file://{tmp_path}/a%20b", f"local:{tmp_path}/a%20b"):
        store = open_store(place)
        assert isinstance(store, FileStore)
        store.put("one", place.encode())
        assert (tmp_path / "a b" / "one").read_bytes() == place.encode()


def test_another_url_is_for_fsspec() -> None:
    assert isinstance(open_store("memory://somewhere"), FsspecStore)


@pytest.mark.parametrize(
    "url", ["gopher-of-old://user:secret@host/x", "file://user:secret@host/folder"]
)
def test_a_url_that_nobody_knows_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInputError, match="RUNLANE_ARCHIVE") as refused:
        open_store(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("absent", "url"), [("fsspec", "memory://x"), ("s3fs", "s3://bucket/x")])
def test_a_package_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, absent: str, url: str
) -> None:
    monkeypatch.setitem(sys.modules, absent, None)
    monkeypatch.delitem(sys.modules, "runlane.journal.archive.fsspec_store")
    with pytest.raises(InvalidInputError, match=r"RUNLANE_ARCHIVE.*runlane\[archive\]"):
        open_store(url)
