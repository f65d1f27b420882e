"""One attempt of one run, from the claim to the end, top to bottom."""

import asyncio
from collections.abc import Mapping
from typing import Final

import structlog
from msgspec.structs import replace

from runlane.journal.archive.segment import Entry
from runlane.journal.checkpoints import Growth
from runlane.journal.errors import (
    ArchiveError,
    ServerError,
    ServerUnavailableError,
    UndecodableError,
    WriteRefusedError,
)
from runlane.journal.kill_points import kill_point
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.path import Path, read_path
from runlane.journal.projection import Projection
from runlane.journal.reader import PAGE, entry_of
from runlane.journal.record_order import RecordOrderError
from runlane.journal.transitions import Checkout, checkout, hand_back, settle
from runlane.journal.wire.codec import decode_job
from runlane.journal.wire.jobs import AnyJob, ContinueJob
from runlane.journal.wire.messages import UserMessage
from runlane.journal.wire.records import (
    AnyBody,
    AttemptStarted,
    MessageAppended,
    RunContinued,
    RunStarted,
)
from runlane.journal.wire.results import AgentRunResult, RunStatus, StopReason
from runlane.worker.app import Agent
from runlane.worker.loop.ending import Ending
from runlane.worker.loop.orchestrator import orchestrate
from runlane.worker.loop.session import HandBackSignal
from runlane.worker.session.held import HeldLease, LeaseLostError
from runlane.worker.session.run_session import JournaledRun
from runlane.worker.session.trail import Trail, id_of

ARCHIVE_RETRY_MAX_S: Final = 5.0

LOOK_S: Final = 5.0
"""How long a run that is given up is held up by a server that does not answer."""

logger = structlog.get_logger(__name__)


async def execute(
    partition: Partition,
    held: HeldLease,
    job_data: bytes,
    *,
    agents: Mapping[str, Agent],
    worker_id: str,
) -> AgentRunResult | None:
    """Carry a claimed run on, as far as it gets; return its result if it ended here.

    Raises:
        WriteRefusedError: The lease was lost; the run goes on elsewhere.
        SessionDivergedError: It was, and the server has lost records of it.
        HandBackSignal: The worker stops, and the run is at a turn boundary.
    """
    kill_point("after_claim")
    try:
        job = decode_job(job_data)
        checked_out, path, trail = await _check_out(partition, held)
        projection = path.project()
    except (UndecodableError, RecordOrderError) as error:
        return await _dead_letter(partition, held, str(error))
    kill_point("after_checkout")
    agent = agents[job.agent]
    run = JournaledRun(
        partition,
        held,
        agent,
        projection=projection,
        trail=trail,
        growth=Growth(path.distance, path.size, path.checkpoint_size),
        server_changed=_server_changed(path, held.lease, checked_out.inc),
        elapsed_s=checked_out.elapsed_s,
    )
    try:
        await run.commit(_beginning(job, agent, held, projection, worker_id), progress=False)
        kill_point("after_run_started")
        ending = await orchestrate(agent, run)
        return await _end(agent, run, ending)
    except (WriteRefusedError, HandBackSignal, asyncio.CancelledError) as reason:
        await _look_for_losses(run, held, reason)
        raise
    finally:
        await run.close()


async def give_back(partition: Partition, held: HeldLease, *, retry_s: float) -> None:
    """Hand a run back to the head of its lane, unless it is not held any more."""
    if held.lost:
        return
    try:
        await hand_back(partition, held.lease, retry_s=retry_s)
    except ServerUnavailableError as error:
        logger.warning("hand_back_failed", run_id=held.lease.run_id, error=str(error))


async def _check_out(partition: Partition, held: HeldLease) -> tuple[Checkout, Path, Trail]:
    lease = held.lease
    try:
        checked_out = await checkout(partition, lease, page=PAGE)
        entries = [entry_of(raw) for raw in checked_out.entries]
        path = await _read_path(partition, held, checked_out.head, entries)
    except ServerUnavailableError as error:
        raise LeaseLostError(lease.run_id, f"the checkout got no answer ({error})") from error
    if checked_out.abort_reason is not None:
        held.cancellation.cancel(checked_out.abort_reason)
    held.steering.update(checked_out.inputs)
    known = {record.record_id for record in path.records}
    read = [entry for entry in reversed(entries) if id_of(entry) in known]
    return checked_out, path, Trail(lease.branch_id, checked_out.head, read)


async def _read_path(
    partition: Partition, held: HeldLease, head: str, entries: list[Entry]
) -> Path:
    """Read the path to the head; an archive that is away is waited for while the run is held."""
    delay, said = 0.1, ""
    while True:
        try:
            return await read_path(partition, held.lease.session_id, head, entries=entries)
        except UndecodableError:
            raise
        except ArchiveError as error:
            if held.draining.is_set():
                raise HandBackSignal from error
            if str(error) != said:
                said = str(error)
                logger.warning("waiting_for_archive", run_id=held.lease.run_id, error=said)
        held.check()
        await asyncio.sleep(delay)
        delay = min(2 * delay, ARCHIVE_RETRY_MAX_S)


async def _look_for_losses(run: JournaledRun, held: HeldLease, reason: BaseException) -> None:
    """Look at once if the server answers, or else once it does."""
    if held.lost or isinstance(reason, LeaseLostError):
        held.afterwards = run.look_for_losses
        return
    try:
        async with asyncio.timeout(LOOK_S):
            await run.look_for_losses()
    except (TimeoutError, ServerError):
        held.afterwards = run.look_for_losses


def _server_changed(path: Path, lease: Lease, inc: str) -> bool:
    """Return whether the server restarted or failed over since the run's last response."""
    responses = (
        record.inc
        for record in reversed(path.records)
        if isinstance(record.body, MessageAppended) and record.body.run_id == lease.run_id
    )
    return next(responses, inc) != inc


def _beginning(
    job: AnyJob, agent: Agent, held: HeldLease, projection: Projection, worker_id: str
) -> AnyBody:
    lease = held.lease
    if projection.open_run is not None:
        assert lease.cause is not None, "a first attempt finds no record of its run"
        return AttemptStarted(
            run_id=lease.run_id, attempt=lease.attempt, worker_id=worker_id, cause=lease.cause
        )
    if isinstance(job, ContinueJob):
        return RunContinued(
            run_id=lease.run_id,
            attempt=lease.attempt,
            agent=agent.name,
            version=agent.version,
            worker_id=worker_id,
        )
    return RunStarted(
        run_id=lease.run_id,
        attempt=lease.attempt,
        agent=agent.name,
        version=agent.version,
        worker_id=worker_id,
        message=UserMessage(job.task),
    )


async def _end(agent: Agent, run: JournaledRun, ending: Ending) -> AgentRunResult:
    kill_point("before_finish")
    unheard = False
    while True:
        result = ending.result(run.projection)
        finished = await run.finish(ending, result, discard=unheard or not result.succeeded)
        if finished.ended:
            break
        if finished.abort_reason is not None:
            aborted = StopReason.EXTERNAL_ABORT
            ending = replace(ending, stop_reason=aborted, output=None, error=finished.abort_reason)
        else:
            ending = await _go_on(agent, run, ending)
            unheard = not {each.input_id for each in finished.pending}.isdisjoint(
                each.input_id for each in run.steering
            )
    kill_point("after_finish")
    return result


async def _go_on(agent: Agent, run: JournaledRun, ending: Ending) -> Ending:
    """Let a run that would have completed hear what was said to it meanwhile."""
    if ending.last:
        await run.commit(*ending.last)
    return await orchestrate(agent, run)


async def _dead_letter(partition: Partition, held: HeldLease, reason: str) -> AgentRunResult | None:
    result = AgentRunResult(
        status=RunStatus.FAILED, stop_reason=StopReason.RUNTIME_ERROR, error=reason[:1000]
    )
    settled = await settle(
        partition, held.lease.run_id, result, dead_reason=reason[:1000], fence=held.lease.fence
    )
    return result if settled else None
