"""Nobody waits for a lane to read it, and no lane waits for another one."""

from pathlib import Path

from tests.journal.driving import Driver

from runlane.journal.wire.messages import UserMessage
from runlane.journal.wire.tree import HistoryImported
from runlane.producer import Session

SAID = (UserMessage("what was said elsewhere"),)


async def test_a_lane_is_read_while_somebody_holds_it(session: Session, tmp_path: Path) -> None:
    async with session.hold() as held:
        assert await session.messages()
        head = await held.append(HistoryImported(format="x", document="", messages=SAID))
        assert await session.messages() == [*SAID]
        assert await session.head() == head
        assert [record.record_id async for record in session.records()][-1] == head
        await session.export_jsonl(tmp_path / "out.jsonl")
        assert (await session.fork(head)).branch_id
        assert (await session.status()).active_run == held.run_id, "it is held all the time"


async def test_other_lanes_go_on_while_one_is_held(session: Session, driver: Driver) -> None:
    async with session.hold():
        await driver.submit(session="other")
        await driver.begin(lease := await driver.lease())
        await driver.finish(lease)
        assert [message.content for message in (await driver.project("other")).messages] == ["hi"]
