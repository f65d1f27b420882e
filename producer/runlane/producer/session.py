"""One branch of a conversation: ask for runs in it, and follow them."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from runlane.journal import transitions
from runlane.journal.errors import UnknownSessionError
from runlane.journal.ids import new_run_id
from runlane.journal.projection import Projection
from runlane.journal.reader import read_records
from runlane.journal.wire.control import ControlReceipt, ControlStatus
from runlane.journal.wire.events import Event
from runlane.journal.wire.jobs import (
    AnyJob,
    ContinueJob,
    FollowUpFailurePolicy,
    FollowUpJob,
    RunJob,
)
from runlane.journal.wire.messages import Message
from runlane.journal.wire.records import Record
from runlane.producer.admission import (
    check_cursor,
    check_failure_policy,
    check_idempotency_key,
    check_name,
    check_reason,
    check_text,
)
from runlane.producer.deployment import Deployment
from runlane.producer.handles import ABORT_REASON, RunHandle
from runlane.producer.overview import SessionStatus, read_agent, read_status
from runlane.producer.runs import RunPlace
from runlane.producer.subscription import Subscription


class Session:
    """A handle on one branch; made by `Client.session`, it costs nothing and may be kept.

    Attributes:
        session_id: The session.
        branch_id: The branch.
        agent: The agent to run; None for the one that the session is bound to.
    """

    def __init__(
        self, deployment: Deployment, session_id: str, branch_id: str, agent: str | None
    ) -> None:
        self.session_id = session_id
        self.branch_id = branch_id
        self.agent = agent
        self._deployment = deployment
        self._partition = deployment.partition

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

    def records(self) -> AsyncIterator[Record]:
        """Return all records of the session, all branches, read page by page.

        Raises:
            UndecodableError: A record is damaged or of a newer version.
            ServerUnavailableError: The server is away.
        """
        return read_records(self._partition, self.session_id)

    async def messages(self) -> list[Message]:
        """Return the transcript of the branch, oldest message first.

        Raises:
            UndecodableError: A record is damaged or of a newer version.
            RecordOrderError: The journal is damaged.
            ServerUnavailableError: The server is away.
        """
        projection = Projection(self.branch_id)
        async for record in self.records():
            projection.add(record.branch_id, record.body)
        return projection.messages

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
                agent=self.agent or await self._bound_agent(),
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

    async def _bound_agent(self) -> str:
        agent = await read_agent(self._partition, self.session_id)
        if agent is None:
            advice = "name the agent that is to begin it, or check the id and RUNLANE_PREFIX"
            raise UnknownSessionError(self.session_id, advice=advice)
        return agent
