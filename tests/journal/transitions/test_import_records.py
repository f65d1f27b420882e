"""import_records and finish_import: a session appears whole, or not at all."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.journal.driving import Driver, open_driver

from runlane.journal import tree
from runlane.journal.errors import (
    ImportLostError,
    SessionClosedError,
    SessionExistsError,
    UnknownSessionError,
)
from runlane.journal.server import Server
from runlane.journal.transitions import (
    ImportedBranch,
    StagedRecord,
    drop_import,
    finish_import,
    import_records,
)
from runlane.journal.transitions.delete_session import delete_session
from runlane.journal.wire.codec import chain_hash, encode_body
from runlane.journal.wire.messages import UserMessage
from runlane.journal.wire.records import AnyBody, RunFinished, RunStarted
from runlane.journal.wire.results import AgentRunResult, StopReason
from runlane.journal.wire.tree import BranchCreated, BranchIntent, Jump, LastRun

DONE = AgentRunResult(
    status=StopReason.TEXT_RESPONSE.status, stop_reason=StopReason.TEXT_RESPONSE, output="42"
)


def staged(
    body: AnyBody, parent_hash: str = "", *, parent: str | int | None = None, branch: str = "main"
) -> StagedRecord:
    kind, data = encode_body(body)
    return StagedRecord(branch, parent, kind, chain_hash(parent_hash, branch, kind, data), data)


def run_of(run_id: str, parent_hash: str = "", parent: str | None = None) -> list[StagedRecord]:
    """Return the two records of a run."""
    begin = RunStarted(
        run_id=run_id,
        attempt=1,
        agent="a",
        version="imported",
        worker_id="import",
        message=UserMessage(f"task of {run_id}"),
    )
    first = staged(begin, parent_hash, parent=parent)
    end = RunFinished(run_id=run_id, branch_id="main", result=DONE)
    return [first, staged(end, first.digest, parent=0)]


class Import:
    """An import of session `s`, call by call."""

    def __init__(self, driver: Driver, token: str = "t") -> None:
        self.driver = driver
        self.token = token
        self.ids: list[str] = []

    @property
    def head(self) -> str:
        return self.ids[-1] if self.ids else ""

    async def send(self, records: Sequence[StagedRecord], *, keep_ms: int = 60_000) -> None:
        self.ids += await import_records(
            self.driver.partition, "s", self.token, records, head=self.head, keep_ms=keep_ms
        )

    async def run(self, run_id: str) -> None:
        await self.send(run_of(run_id, self.head.rpartition(".")[2], self.head or None))

    async def finish(self, *branches: ImportedBranch, agent: str | None = "a") -> int:
        last = LastRun(self.last_run, StopReason.TEXT_RESPONSE)
        main = ImportedBranch(branch_id="main", head=self.ids[-1], last_run=last)
        return await finish_import(
            self.driver.partition,
            "s",
            self.token,
            branches or [main],
            head=self.head,
            agent=agent,
        )

    last_run = "r2"


async def test_it_appears_all_at_once(driver: Driver) -> None:
    importing = Import(driver)
    await importing.run("r1")
    await importing.run("r2")
    assert await driver.records() == []
    assert await driver.partition.call("ZCARD", driver.keys.sessions()) == 0
    with pytest.raises(UnknownSessionError):
        await tree.read_head(driver.partition, "s", "main")
    with pytest.raises(SessionClosedError, match="importing"):
        await driver.submit()
    with pytest.raises(SessionClosedError, match="importing"):
        await driver.branch("side")

    async with driver.hearing(driver.keys.events("s")) as heard:
        assert await importing.finish() == 4
    assert [record.record_id for record in await driver.records()] == importing.ids
    assert await tree.read_head(driver.partition, "s", "main") == importing.head
    assert heard == [b"D" + importing.head.partition(".")[0].encode()]
    assert await driver.partition.call("ZSCORE", driver.keys.archive(), "s") is not None
    for key in (driver.keys.session("s"), driver.keys.log("s")):
        assert await driver.partition.call("TTL", key) == -1
    await driver.check(quiescent=True)


async def test_its_lanes_go_on(driver: Driver) -> None:
    importing = Import(driver)
    await importing.run("r1")
    await importing.run("r2")
    await importing.finish()
    continued = await driver.held(intent="continue")
    assert (await driver.checkout(continued)).head == importing.head
    await driver.finish(continued)
    await driver.completed()
    await driver.check()


async def test_a_branch_knows_where_it_begins(driver: Driver) -> None:
    importing = Import(driver)
    await importing.run("r1")
    base = importing.head
    await importing.run("r2")
    body = BranchCreated(intent=BranchIntent.FORK, source_branch_id="main")
    created = staged(body, base.rpartition(".")[2], parent=base, branch="side")
    main = ImportedBranch(
        branch_id="main", head=importing.head, last_run=LastRun("r2", StopReason.TEXT_RESPONSE)
    )
    await importing.send([created])
    side = ImportedBranch(
        branch_id="side",
        head=importing.head,
        last_run=LastRun("r1", StopReason.TEXT_RESPONSE),
        created_id=importing.head,
        jump=Jump(
            branch_id="side",
            base_id=base,
            base_branch_id="main",
            source_branch_id="main",
            intent=BranchIntent.FORK,
        ),
    )
    await importing.finish(main, side)
    _, found = await tree.list_branches(driver.partition, "s")
    assert (found.branch_id, found.head_id, found.base_id) == ("side", importing.head, base)
    await tree.fork(driver.partition, "s", "side", record_id=base, name="third")
    await driver.check()


async def test_the_same_call_again_gets_the_same_answer(driver: Driver) -> None:
    importing = Import(driver)
    await importing.run("r1")
    for run_id in ("r2", "r3"):
        await importing.run(run_id)
        sent = driver.last
        async with driver.unchanged():
            assert await driver.partition.resend(sent) == [b"DUP", *sent.reply[1:]]
    importing.last_run = "r3"
    await importing.finish()
    finished = driver.last
    async with driver.unchanged():
        assert await driver.partition.resend(finished) == [b"DUP", *finished.reply[1:]]


async def test_a_name_that_is_taken_is_refused(driver: Driver) -> None:
    await driver.submit()
    async with driver.unchanged():
        with pytest.raises(SessionExistsError, match="delete it"):
            await Import(driver).run("r1")


async def test_two_imports_of_one_name_do_not_mix(driver: Driver) -> None:
    first = Import(driver, "first")
    await first.run("r1")
    async with driver.unchanged():
        with pytest.raises(SessionExistsError, match="imported already"):
            await Import(driver, "second").run("r1")
    late = Import(driver, "second")
    late.ids = first.ids
    async with driver.unchanged():
        with pytest.raises(ImportLostError):
            await late.run("r2")
        with pytest.raises(ImportLostError):
            await late.finish()
    await first.run("r2")
    await first.finish()
    await driver.check()


async def test_a_dead_import_vanishes_and_its_name_is_free(driver: Driver) -> None:
    dead = Import(driver, "dead")
    await dead.send(run_of("r1"), keep_ms=1)

    names = driver.keys.session("s"), driver.keys.staged("s")
    async with asyncio.timeout(10):
        while True:
            if not await driver.partition.call("EXISTS", *names):
                break
            await asyncio.sleep(0.001)
    with pytest.raises(ImportLostError):
        await dead.run("r2")
    with pytest.raises(ImportLostError):
        await dead.finish()
    again = Import(driver, "again")
    await again.run("r1")
    await again.run("r2")
    await again.finish()
    await driver.check()


async def test_what_a_failover_lost_is_missed(driver: Driver) -> None:
    importing = Import(driver)
    await importing.run("r1")
    before = importing.head
    await importing.run("r2")
    await driver.partition.call("HSET", driver.keys.session("s"), "import_head", before)
    async with driver.unchanged():
        with pytest.raises(ImportLostError):
            await importing.run("r3")
        with pytest.raises(ImportLostError):
            await importing.finish()


async def test_one_that_is_deleted_meanwhile_is_lost(driver: Driver) -> None:
    importing = Import(driver)
    await importing.run("r1")
    await delete_session(driver.partition, "s")
    with pytest.raises(ImportLostError):
        await importing.run("r2")
    with pytest.raises(ImportLostError):
        await importing.finish()
    with pytest.raises(SessionExistsError):
        await Import(driver, "again").run("r1")


async def test_revisions_go_on_where_a_deleted_session_stopped(driver: Driver) -> None:
    await driver.partition.call("HSET", driver.keys.deleted(), "s", 7)
    importing = Import(driver)
    await importing.run("r1")
    await importing.run("r2")
    assert await importing.finish() == 11
    assert [record.revision for record in await driver.records()] == [8, 9, 10, 11]
    await driver.check()


async def test_without_an_agent_the_first_run_binds_it(driver: Driver) -> None:
    importing = Import(driver)
    await importing.run("r1")
    await importing.run("r2")
    await importing.finish(agent=None)
    assert "agent" not in await driver.fields(driver.keys.session("s"))
    await driver.submit(agent="b")
    assert (await driver.fields(driver.keys.session("s")))["agent"] == "b"


async def test_a_restart_in_the_middle_does_no_harm(own_server: Server) -> None:
    async with open_driver(own_server.url) as driver:
        importing = Import(driver)
        await importing.run("r1")
        own_server.stop()
        own_server.start()
        await importing.run("r2")
        incs = {record_id.partition("-")[2].partition(".")[0] for record_id in importing.ids}
        assert len(incs) == 2
        await importing.finish()
        assert [record.record_id for record in await driver.records()] == importing.ids
        await driver.check()


async def test_an_import_that_is_given_up_leaves_the_name_free(driver: Driver) -> None:
    given_up = Import(driver)
    await given_up.run("r1")
    await drop_import(driver.partition, "s", "t")
    assert driver.last.code == "OK"
    assert [name for name in await driver.dump() if ":s" in name and name.endswith(":s")] == []
    again = Import(driver, "other")
    await again.run("r2")
    await drop_import(driver.partition, "s", "t")
    assert driver.last.code == "LOST"
    await again.finish()
    async with driver.unchanged():
        await drop_import(driver.partition, "s", "other")
    await driver.check()
