"""Short words for conversations that a test carries on by hand."""

from msgspec.structs import replace
from tests.journal.builders import said, started
from tests.journal.driving import Driver

from runlane.journal.lease import Lease
from runlane.journal.wire.messages import UserMessage
from runlane.journal.wire.records import RunContinued
from runlane.journal.wire.results import StopReason
from runlane.producer import Session


def continuation(lease: Lease) -> RunContinued:
    return RunContinued(
        run_id=lease.run_id, attempt=lease.attempt, agent="a", version="1", worker_id="w1"
    )


async def begin(driver: Driver, branch: str = "main", task: str = "hi") -> Lease:
    lease = await driver.held(branch=branch, task=task)
    await driver.checkout(lease)
    await driver.append(lease, [replace(started(lease), message=UserMessage(task))])
    return lease


async def answer(
    driver: Driver,
    task: str = "hi",
    *,
    branch: str = "main",
    stop_reason: StopReason = StopReason.TEXT_RESPONSE,
) -> str:
    """Carry out a run that says "re: <task>"; return the record id of its end."""
    lease = await begin(driver, branch, task)
    finished = await driver.finish(lease, stop_reason, entries=[said(lease, text=f"re: {task}")])
    return finished.head


async def texts(session: Session, record_id: str | None = None) -> list[str | None]:
    return [message.content for message in (await session.checkout(record_id)).messages]


def told(*tasks: str) -> list[str]:
    """Return the transcript of runs with these tasks."""
    return [text for task in tasks for text in (task, f"re: {task}")]
