"""One branch of a conversation: ask for runs in it, and follow them."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from runlane.journal import transitions, upkeep
from runlane.journal.holds import HeldLane, hold_lane
from runlane.journal.ids import new_run_id
from runlane.journal.wire.control import ControlReceipt, ControlStatus
from runlane.journal.wire.events import Event
from runlane.journal.wire.jobs import (
    AnyJob,
    ContinueJob,
    FollowUpFailurePolicy,
    FollowUpJob,
    RunJob,
)
from runlane.producer.admission import (
    check_cursor,
    check_failure_policy,
    check_idempotency_key,
    check_name,
    check_reason,
    check_steering,
    check_text,
    check_timeout,
)
from runlane.producer.handles import ABORT_REASON, RunHandle
from runlane.producer.overview import SessionStatus, read_agent, read_status
from runlane.producer.runs import RunPlace
from runlane.producer.session_journal import SessionJournal
from runlane.producer.subscription import Subscription

STEAL_REASON: Final = "taken away by an operator"


class Session(SessionJournal):
    """A handle on one branch; made by `Client.session`, it costs nothing and may be kept.

    Attributes:
        session_id: The session.
        branch_id: The branch.
        agent: The agent to run; None for the one that the session is bound to.
    """

    async def run(
        self, task: str, *, idempotency_key: str | None = None, version: str | None = None
    ) -> RunHandle:
        """Ask for an answer to a task, behind whatever waits in the lane already.

        Args:
            task: What the user says.
            idempotency_key: The same key and task again give the same run, for a week.
            version: Only a worker that serves this version of the agent may execute it.

        Raises:
            InvalidInputError: A value is refused.
            PayloadTooLargeError: The task is over the limit.
            IdempotencyConflictError: The key was used with another body.
            UnknownAgentError: No worker has ever served the agent.
            UnknownSessionError: No agent was named, and there is no such session.
            AgentMismatchError: The session belongs to another agent.
            ServerUnavailableError: The server is away.
        """
        return await self._submit(
            RunJob,
            check_idempotency_key(idempotency_key),
            task=check_text("the task", task),
            version=None if version is None else check_name("version", version),
        )

    async def runtime(
        self,
        task: str,
        *,
        idempotency_key: str | None = None,
        version: str | None = None,
        timeout: float | None = None,
    ) -> str | None:
        """Ask for an answer to a task, wait for it and return it; None if there is no text.

        Raises:
            AgentRunError: The run ended without completing; `result` of the error says how.
            ResultTimeoutError: It has not ended within `timeout` seconds; it goes on.
            RunlaneError: As `run` and `RunHandle.result` say.
        """
        deadline = check_timeout(timeout)
        handle = await self.run(task, idempotency_key=idempotency_key, version=version)
        return (await handle.result(deadline)).raise_for_status().output

    async def continue_run(self) -> RunHandle:
        """Ask to go on from where the last run of the lane ended, without a new message.

        Raises:
            ContinueRejectedError: The lane is busy, nothing ran in it, or its last run ended in
                a way that cannot be continued.
            UnknownAgentError: No worker has ever served the agent.
            UnknownSessionError: No agent was named, and there is no such session.
            AgentMismatchError: The session belongs to another agent.
            ServerUnavailableError: The server is away.
        """
        return await self._submit(ContinueJob, None)

    async def follow_up(
        self,
        task: str,
        *,
        idempotency_key: str | None = None,
        failure_policy: FollowUpFailurePolicy = FollowUpFailurePolicy.DISCARD,
    ) -> RunHandle:
        """Ask for an answer to a task directly after the active run and its follow-ups.

        Args:
            task: What the user says.
            idempotency_key: The same key and task again give the same run, for a week.
            failure_policy: What happens to it when the run before it does not complete.

        Raises:
            FollowUpRejectedError: No run is active.
            InvalidInputError: A value is refused.
            PayloadTooLargeError: The task is over the limit.
            IdempotencyConflictError: The key was used with another body.
            UnknownAgentError: No worker has ever served the agent.
            UnknownSessionError: No agent was named, and there is no such session.
            AgentMismatchError: The session belongs to another agent.
            ServerUnavailableError: The server is away.
        """
        return await self._submit(
            FollowUpJob,
            check_idempotency_key(idempotency_key),
            task=check_text("the task", task),
            failure_policy=check_failure_policy(failure_policy),
        )

    async def steer(self, content: str) -> ControlReceipt:
        """Say something to the active run of the lane; its model hears it in its next request.

        What was accepted is settled exactly once, whatever process dies: the journal says
        `steering_applied`, or `steering_discarded` if the run ends before. A run that would have
        completed goes on for another turn.

        Args:
            content: What is said; white space around it is left out.

        Returns:
            What came of it: `accepted`, with the id that the journal names it by; `agent_idle` if
            no run is active; `run_closing` if it was told to stop; `queue_full` if 16 inputs wait.

        Raises:
            InvalidInputError: The content is blank, too long or no valid text.
            DurabilityError: It was accepted, and too few replicas confirmed it.
            ServerUnavailableError: The server is away.
        """
        return await transitions.steer(
            self._partition, self.session_id, self.branch_id, check_steering(content)
        )

    async def abort(self, reason: str = ABORT_REASON) -> ControlReceipt:
        """Ask the active run of the lane to stop; what waits behind it stays.

        Returns:
            What came of it: `agent_idle`, with an empty run id, if no run is active.

        Raises:
            InvalidInputError: The reason is blank, too long or no valid text.
            ServerUnavailableError: The server is away.
        """
        why = check_reason(reason)
        lane = self._partition.keys.lane(self.session_id, self.branch_id)
        active: bytes | None = await self._partition.call("HGET", lane, "active")
        if active is None:
            return ControlReceipt(run_id="", status=ControlStatus.AGENT_IDLE)
        return await transitions.abort(
            self._partition, active.decode(), branch_id=self.branch_id, reason=why
        )

    async def steal(self, reason: str = STEAL_REASON) -> ControlReceipt:
        """Take the active run of the lane away from its worker; another one carries it on at once.

        For a worker that hangs, or that cannot be reached. Nothing that it writes afterwards is
        accepted, whatever the clock says. A lane that is held by `hold` goes on without its holder.

        Returns:
            What came of it: `agent_idle`, if no run is active or no worker has it.

        Raises:
            InvalidInputError: The reason is blank, too long or no valid text.
            DurabilityError: It was taken away, and too few replicas confirmed it.
            ServerUnavailableError: The server is away.
        """
        why = check_reason(reason)
        lane = self._partition.keys.lane(self.session_id, self.branch_id)
        active: bytes | None = await self._partition.call("HGET", lane, "active")
        if active is None:
            return ControlReceipt(run_id="", status=ControlStatus.AGENT_IDLE)
        return await transitions.steal(
            self._partition, active.decode(), branch_id=self.branch_id, reason=why
        )

    def hold(self, *, timeout: float | None = None) -> AbstractAsyncContextManager[HeldLane]:
        """Keep the lane to oneself within an `async with` block, behind whatever waits in it.

        No run begins in it meanwhile. Within the block records can be appended, outside of a run.
        A process that dies loses the lane after its lease (`RUNLANE_LEASE_MS`), and so does one
        whose event loop stands still for that long.

        Args:
            timeout: How long to wait for the lane, in seconds; None for as long as it takes, 0
                tries once.

        Raises:
            InvalidInputError: The timeout is negative or not a number; raised by this call, the
                others by the block.
            SessionLockTimeoutError: The lane was not free in that time.
            SessionFencedError: Somebody took the lane away: while it was waited for, or within
                the block, whose end says so.
            UnknownSessionError: There is no such session.
            UnknownBranchError: It has no such branch.
            SessionClosedError: It is being deleted or imported.
            ServerUnavailableError: The server is away.
        """
        return hold_lane(
            self._partition,
            self.session_id,
            self.branch_id,
            lease_ms=self._deployment.settings.lease_ms,
            timeout=check_timeout(timeout),
        )

    def events(self, after: str | None = None) -> AsyncGenerator[Event, None]:
        """Return the events of the whole session, all branches, live ones included, without end.

        Each committed event comes once, in order, whatever happens to connections; the iterator
        outlives any absence of the server. A session that does not exist yet is waited for.

        Args:
            after: The cursor of a committed event: only what comes after it. If the journal
                does not have that record any more, the first event is `journal_reset` and
                everything comes from the beginning.

        Raises:
            InvalidInputError: The cursor is malformed; raised by this call, the others while
                iterating.
            UndecodableError: A record is damaged or of a newer version.
            ServerUnsuitableError: The server refuses to serve them.
        """
        subscription = Subscription(self._partition, self.session_id, after=check_cursor(after))
        return subscription.follow(self._deployment.hub)

    async def delete(self) -> None:
        """Delete the whole session, all branches: nothing of it stays, in the archive either.

        Its runs end as `external_abort`, and their terminal events are heard. A deletion that is
        stopped halfway goes on by itself. The next session of this name begins anew, with higher
        revisions, so that an old cursor names none of its records.

        Raises:
            UnknownSessionError: There is no such session.
            ArchiveMissingError: It is archived, and this process has no archive; nothing was done.
            ArchiveError: The archive cannot be used; the deletion goes on later.
            ServerUnavailableError: The server is away.
        """
        keep_s = self._deployment.settings.keep_dead_s
        await upkeep.delete(self._partition, self.session_id, keep_s=keep_s)

    async def status(self) -> SessionStatus:
        """Return the session and its lane as of now.

        Raises:
            UnknownSessionError: There is no such session.
            ServerUnavailableError: The server is away.
        """
        return await read_status(self._partition, self.session_id, self.branch_id)

    async def _submit(self, job: type[AnyJob], key: str | None, **fields: Any) -> RunHandle:
        settings = self._deployment.settings
        submitted = await transitions.submit(
            self._partition,
            job(
                run_id=new_run_id(),
                session_id=self.session_id,
                branch_id=self.branch_id,
                agent=self.agent or await read_agent(self._partition, self.session_id),
                **fields,
            ),
            payload_bytes_max=settings.payload_bytes_max,
            idempotency_key=key,
            idempotency_s=settings.idempotency_s,
        )
        place = RunPlace(
            run_id=submitted.run_id,
            session_id=self.session_id,
            branch_id=self.branch_id,
            queued_id=submitted.queued_id,
        )
        return RunHandle(self._deployment, place)
