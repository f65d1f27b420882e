"""A session as a file."""

import asyncio
import io
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from tests.producer.hand_worker import HandWorker
from tests.producer.support import (
    DEADLINE_S,
    exported,
)

from runlane.journal.errors import (
    UnknownSessionError,
)
from runlane.journal.reader import read_page
from runlane.journal.transfer.jsonl_reader import read_jsonl
from runlane.journal.wire.records import (
    Record,
)
from runlane.producer import Client, Session
from runlane.producer.files import NewFile

pytestmark = pytest.mark.usefixtures("sound")


async def test_an_export_holds_what_was_there_when_it_began(
    session: Session, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await session.run("one")
    await worker.complete("yes")

    async def run_and_read(*args: Any, **options: Any) -> list[Record]:
        await session.run("meanwhile")
        await worker.complete("no")
        return await read_page(*args, **options)

    monkeypatch.setattr("runlane.producer.exporting.read_page", run_and_read)
    out = io.BytesIO()
    report = await session.export_jsonl(out)
    assert report.revision == 4
    assert read_jsonl(io.BytesIO(out.getvalue())).report.runs == 1
    assert (report.size, report.lines) == (len(out.getvalue()), out.getvalue().count(b"\n"))


async def test_a_file_appears_whole_and_is_for_its_owner_only(
    session: Session, worker: HandWorker, tmp_path: Path
) -> None:
    await session.run("one")
    await worker.complete("yes")
    path = tmp_path / "s1.jsonl"
    path.write_text("older")
    report = await session.export_jsonl(path)
    assert path.read_bytes() == await exported(session)
    assert report.size == path.stat().st_size
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["s1.jsonl"]


async def test_a_link_is_followed_and_a_pipe_is_left_a_pipe(
    session: Session, worker: HandWorker, tmp_path: Path
) -> None:
    await session.run("one")
    await worker.complete("yes")
    expected = await exported(session)
    link, file, pipe = tmp_path / "link", tmp_path / "file", tmp_path / "pipe"
    link.symlink_to(file)
    await session.export_jsonl(link)
    assert link.is_symlink()
    assert file.read_bytes() == expected
    os.mkfifo(pipe)
    async with asyncio.timeout(DEADLINE_S):
        reading = asyncio.create_task(asyncio.to_thread(pipe.read_bytes))
        await session.export_jsonl(pipe)
        assert await reading == expected
    assert pipe.is_fifo()


async def test_an_export_that_fails_leaves_the_older_file(
    session: Session, worker: HandWorker, redis: Redis, tmp_path: Path
) -> None:
    await session.run("one")
    path = tmp_path / "s1.jsonl"
    path.write_text("older")
    key = worker.partition.keys.session("s1")
    await worker.partition.call("HSET", key, "rev", 99)
    with pytest.raises(UnknownSessionError):
        await session.export_jsonl(str(path))
    await worker.partition.call("HSET", key, "rev", 1)
    assert path.read_text() == "older"
    assert os.listdir(tmp_path) == ["s1.jsonl"]
    with pytest.raises(FileNotFoundError):
        await session.export_jsonl(tmp_path / "nowhere" / "s1.jsonl")


async def test_an_unknown_session_makes_no_file(client: Client, tmp_path: Path) -> None:
    with pytest.raises(UnknownSessionError):
        await client.session("nowhere").export_jsonl(tmp_path / "x")
    assert os.listdir(tmp_path) == []


async def test_a_file_whose_writer_was_cancelled_at_its_end_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that brings it to its place goes on: abandoning it must not come in between."""
    file = NewFile(tmp_path / "s1.jsonl")
    file.write(b"all of it\n")
    fsync, syncing, go_on = os.fsync, threading.Event(), threading.Event()

    def slow_fsync(descriptor: int) -> None:
        syncing.set()
        go_on.wait(DEADLINE_S)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow_fsync)
    finishing = asyncio.create_task(asyncio.to_thread(file.finish))
    await asyncio.to_thread(syncing.wait, DEADLINE_S)
    finishing.cancel()
    abandoning = asyncio.create_task(asyncio.to_thread(file.abandon))
    with pytest.raises(asyncio.CancelledError):
        await finishing
    go_on.set()
    await abandoning
    assert os.listdir(tmp_path) == ["s1.jsonl"]
    assert (tmp_path / "s1.jsonl").read_bytes() == b"all of it\n"
