"""A session that comes from a file: whole, or not at all."""

import asyncio
import codecs
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
from tests.transfer.ejagent_files import GOLDEN, FileBuilder, result
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
from runlane.journal.wire.records import RunStarted
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


async def test_runs_whose_ids_are_none_here_are_retried_by_others(
    session: Session, worker: HandWorker
) -> None:
    ids = ["é run / 1", "x" * 200, "plain", "A" * 32]
    file = FileBuilder()
    for number, run_id in enumerate(ids):
        file.add("run_started", 3 * number + 1, run_id=run_id, task=f"task {number}")
        file.add("run_finished", 3 * number + 2, run_id=run_id, result=result())
    report = await session.import_jsonl(io.BytesIO(b"".join(file.encoded)))
    assert (report.runs, report.renamed_runs) == (4, 2)
    began = [one.body async for one in session.records() if one.kind == "run_started"]
    assert "plain" in {body.run_id for body in began if isinstance(body, RunStarted)}
    for number, body in enumerate(began):
        assert isinstance(body, RunStarted)
        retry = await session.prepare_retry(body.run_id)
        assert (retry.task, retry.retried_run_id) == (f"task {number}", body.run_id)


@pytest.mark.parametrize("name", ["jsonl", "tada"])
async def test_a_byte_order_mark_is_no_part_of_a_file(
    session: Session, worker: HandWorker, name: str
) -> None:
    if name == "tada":
        state = b'{"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}'
        await session.import_jsonl(io.BytesIO(codecs.BOM_UTF8 + state), file_format="tada")
    else:
        await session.import_jsonl(io.BytesIO(codecs.BOM_UTF8 + GOLDEN.read_bytes()))
    assert await session.messages()


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


async def test_an_import_that_fails_or_is_interrupted_frees_the_name_at_once(
    session: Session, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "PAGE_RECORDS", 5)
    for error in (KeyboardInterrupt(), ValueError(), asyncio.CancelledError()):

        def fail(done: int, total: int, error: BaseException = error) -> None:
            raise error

        with pytest.raises(type(error)):
            await session.import_jsonl(GOLDEN, progress=fail)
        for key in (worker.partition.keys.session("s1"), worker.partition.keys.staged("s1")):
            assert not await worker.partition.call("EXISTS", key)
    await session.import_jsonl(GOLDEN)
    assert (await session.status()).revision == 13


async def test_an_import_that_dies_leaves_nothing_to_be_seen(
    client: Client, session: Session, worker: HandWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "PAGE_RECORDS", 5)

    async def never(*_: Any) -> None:
        pass

    monkeypatch.setattr(importing, "_give_up", never)  # as after SIGKILL

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
    with pytest.raises(SessionExistsError, match="after a minute"):
        await session.import_jsonl(GOLDEN)
    for key in (worker.partition.keys.session("s1"), worker.partition.keys.staged("s1")):
        assert 0 < await worker.partition.call("PTTL", key) <= 60_000
    await session.delete()
    await session.import_jsonl(GOLDEN)
    assert (await session.status()).revision == 13
