"""A session that comes from a file: whole, or not at all."""

import asyncio
import io
import json
from typing import Any, cast

import pytest
from redis.asyncio import Redis
from tests.producer.hand_worker import HandWorker
from tests.producer.support import (
    add_run,
    first,
    moved,
    until_subscribed,
)
from tests.transfer.ejagent_files import GOLDEN
from tests.transfer.folding import Records, write

from runlane.journal.errors import (
    JournalFormatError,
    RetryRejectedError,
    SessionClosedError,
    SessionExistsError,
    UnknownSessionError,
)
from runlane.journal.wire.messages import (
    AssistantMessage,
    UserMessage,
)
from runlane.journal.wire.tree import BranchCreated, BranchIntent
from runlane.producer import Client, InvalidInputError, Session, files, importing

pytestmark = pytest.mark.usefixtures("sound")


async def test_imported_runs_are_continued_and_retried(client: Client, worker: HandWorker) -> None:
    session = client.session("golden", agent="support")
    await session.import_jsonl(GOLDEN)
    retry = await session.prepare_retry("r1")
    assert (retry.task, retry.retried_run_id) == ("first", "r1")
    back = client.session("golden", branch="back")
    assert (await back.status()).last_run == "r1"
    handle = await back.continue_run()
    (lease,) = await worker.claim()
    await worker.carry_out(lease, "further")
    assert (await handle).output == "further"
    assert (await back.messages())[-1] == AssistantMessage("further")
    with pytest.raises(RetryRejectedError, match="continued"):
        await client.session("golden", branch="main").prepare_retry("r2")


async def test_an_agent_that_is_unknown_here_is_not_bound(
    client: Client, worker: HandWorker
) -> None:
    session = client.session("golden")
    await session.import_jsonl(GOLDEN)
    assert (await session.status()).agent is None
    assert [info.agent async for info in client.sessions()] == [None]
    with pytest.raises(InvalidInputError, match="no agent yet"):
        await session.run("hello")
    await client.session("golden", agent="sales").run("hello")
    assert (await session.status()).agent == "sales"


async def test_who_waits_for_the_session_hears_all_of_it_once(
    client: Client, session: Session, worker: HandWorker
) -> None:
    waiting = asyncio.create_task(first(10, session.events()))
    await until_subscribed(worker.partition, session)
    await session.import_jsonl(GOLDEN)
    assert [event.revision for event in await waiting] == list(range(1, 11))


async def test_a_long_branch_begins_at_a_checkpoint(
    client: Client, session: Session, worker: HandWorker
) -> None:
    records = Records()
    for number in range(70):
        add_run(records, "main", f"task {number}")
        if number == 35:
            base = records.heads["main"].record_id
            body = BranchCreated(intent=BranchIntent.FORK, source_branch_id="main")
            records.add("side", body, base)
    add_run(records, "side", "aside")
    await session.import_jsonl(io.BytesIO(b"".join(write(records, "s1"))))
    for branch in ("main", "side"):
        lane = client.session("s1", branch=branch)
        expected = records.project_branch(branch)
        checkout = await lane.checkout()
        assert (checkout.messages, checkout.last_run) == (expected.messages, expected.last_run)
    kinds = [record.kind async for record in session.records(newest_first=True)]
    assert kinds[:2] == ["checkpoint", "checkpoint"]
    await session.run("further")
    held = await worker.begin()
    assert held.head.startswith(f"{len(kinds) + 2}-")


async def test_a_name_that_is_taken_is_refused(session: Session, worker: HandWorker) -> None:
    await session.run("one")
    with pytest.raises(SessionExistsError):
        await session.import_jsonl(GOLDEN)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "no complete record"),
        (b"{}\n", "line 1"),
        (GOLDEN.read_bytes().replace(b'"revision":4', b'"revision":5'), "line 4"),
    ],
    ids=["empty", "no-record", "wrong-revision"],
)
async def test_a_file_that_breaks_its_format_is_refused_before_anything_is_stored(
    session: Session, worker: HandWorker, redis: Redis, content: bytes, text: str
) -> None:
    with pytest.raises(JournalFormatError, match=text):
        await session.import_jsonl(io.BytesIO(content))
    assert not await worker.partition.call("EXISTS", worker.partition.keys.session("s1"))


async def test_files_without_an_end_are_not_read_at_once(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LINE_BYTES_MAX", 100)
    monkeypatch.setattr(importing, "DOCUMENT_BYTES_MAX", 100)
    with pytest.raises(JournalFormatError, match=r"line 1 .* more than 100 bytes"):
        await session.import_jsonl(GOLDEN)
    with pytest.raises(JournalFormatError, match="more than 100 bytes"):
        await session.import_jsonl(GOLDEN, file_format="tada")


async def test_a_session_of_tada_core_comes_in(client: Client, worker: HandWorker) -> None:
    content = [{"type": "text", "text": "hi"}]
    state = {"messages": [{"role": "user", "content": content}]}
    session = client.session("t", agent="support")
    await session.import_jsonl(io.BytesIO(json.dumps(state).encode()), file_format="tada")
    assert await session.messages() == [UserMessage("hi")]
    there = await moved(client, session)
    assert await there.messages() == [UserMessage("hi")]


async def test_an_unknown_format_is_refused(session: Session) -> None:
    with pytest.raises(InvalidInputError, match="ejagent, tada"):
        await session.import_jsonl(GOLDEN, file_format=cast("Any", "yaml"))


async def test_an_import_that_dies_leaves_nothing_to_be_seen(
    client: Client, session: Session, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "PAGE_RECORDS", 5)

    def die(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await session.import_jsonl(GOLDEN, progress=die)
    with pytest.raises(UnknownSessionError):
        await session.status()
    with pytest.raises(UnknownSessionError):
        await session.head()
    assert [info async for info in client.sessions()] == []
    with pytest.raises(SessionClosedError, match="importing"):
        await session.run("one")
    with pytest.raises(SessionExistsError, match="within a minute"):
        await session.import_jsonl(GOLDEN)
    await session.delete()
    await session.import_jsonl(GOLDEN)
    assert (await session.status()).revision == 13
