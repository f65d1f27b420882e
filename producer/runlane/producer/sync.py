"""The way in for synchronous code, such as Django or Flask: the same verbs, blocking."""

from collections.abc import Iterator
from typing import Self

from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.settings import Settings
from runlane.journal.wire.control import ControlReceipt
from runlane.journal.wire.events import Event
from runlane.journal.wire.jobs import FollowUpFailurePolicy
from runlane.journal.wire.messages import Message
from runlane.journal.wire.results import AgentRunResult
from runlane.producer.background_loop import BackgroundLoop
from runlane.producer.client import Client
from runlane.producer.handles import ABORT_REASON, RunHandle
from runlane.producer.overview import SessionInfo, SessionStatus
from runlane.producer.runs import RunInfo
from runlane.producer.session import Session


class SyncRunHandle:
    """`RunHandle`, blocking.

    Attributes:
        run_id: The run.
        session_id: Its session.
        branch_id: Its branch.
    """

    def __init__(self, loop: BackgroundLoop, handle: RunHandle) -> None:
        self.run_id = handle.run_id
        self.session_id = handle.session_id
        self.branch_id = handle.branch_id
        self._loop = loop
        self._handle = handle

    def result(self, timeout: float | None = None) -> AgentRunResult:
        """See `RunHandle.result`."""
        return self._loop.call(self._handle.result, timeout)

    def status(self) -> RunInfo:
        """See `RunHandle.status`."""
        return self._loop.call(self._handle.status)

    def events(self, after: str | None = None) -> Iterator[Event]:
        """See `RunHandle.events`."""
        return self._loop.iterate(self._handle.events(after))

    def abort(self, reason: str = ABORT_REASON) -> ControlReceipt:
        """See `RunHandle.abort`."""
        return self._loop.call(self._handle.abort, reason)


class SyncSession:
    """`Session`, blocking.

    Attributes:
        session_id: The session.
        branch_id: The branch.
    """

    def __init__(self, loop: BackgroundLoop, session: Session) -> None:
        self.session_id = session.session_id
        self.branch_id = session.branch_id
        self._loop = loop
        self._session = session

    def run(
        self, task: str, *, idempotency_key: str | None = None, version: str | None = None
    ) -> SyncRunHandle:
        """See `Session.run`."""
        handle = self._loop.call(
            self._session.run, task, idempotency_key=idempotency_key, version=version
        )
        return SyncRunHandle(self._loop, handle)

    def continue_run(self) -> SyncRunHandle:
        """See `Session.continue_run`."""
        return SyncRunHandle(self._loop, self._loop.call(self._session.continue_run))

    def follow_up(
        self,
        task: str,
        *,
        idempotency_key: str | None = None,
        failure_policy: FollowUpFailurePolicy = FollowUpFailurePolicy.DISCARD,
    ) -> SyncRunHandle:
        """See `Session.follow_up`."""
        handle = self._loop.call(
            self._session.follow_up,
            task,
            idempotency_key=idempotency_key,
            failure_policy=failure_policy,
        )
        return SyncRunHandle(self._loop, handle)

    def abort(self, reason: str = ABORT_REASON) -> ControlReceipt:
        """See `Session.abort`."""
        return self._loop.call(self._session.abort, reason)

    def events(self, after: str | None = None) -> Iterator[Event]:
        """See `Session.events`; waits for the next event without end."""
        return self._loop.iterate(self._session.events(after))

    def messages(self) -> list[Message]:
        """See `Session.messages`."""
        return self._loop.call(self._session.messages)

    def status(self) -> SessionStatus:
        """See `Session.status`."""
        return self._loop.call(self._session.status)


class SyncClient:
    """`Client`, blocking; a context manager that closes itself.

    All calls run in one event loop in a thread of its own, so that one client serves all threads
    of a process. Threads do not survive a fork: a process that forks workers (gunicorn, uwsgi,
    celery) makes a client in each of them, after the fork. Errors are those of `Client`.
    """

    def __init__(self, loop: BackgroundLoop, client: Client) -> None:
        self._loop = loop
        self._client = client

    @classmethod
    def connect(cls, url: str | None = None, *, settings: Settings | None = None) -> Self:
        """See `Client.connect`."""
        loop = BackgroundLoop()
        try:
            return cls(loop, loop.call(Client.connect, url, settings=settings))
        except BaseException:
            loop.close(_nothing)
            raise

    def session(
        self, session_id: str, *, agent: str | None = None, branch: str = MAIN_BRANCH
    ) -> SyncSession:
        """See `Client.session`."""
        return SyncSession(self._loop, self._client.session(session_id, agent=agent, branch=branch))

    def sessions(self) -> Iterator[SessionInfo]:
        """See `Client.sessions`."""
        return self._loop.iterate(self._client.sessions())

    def run_handle(self, run_id: str) -> SyncRunHandle:
        """See `Client.run_handle`."""
        return SyncRunHandle(self._loop, self._loop.call(self._client.run_handle, run_id))

    def status(self, run_id: str) -> RunInfo:
        """See `Client.status`."""
        return self._loop.call(self._client.status, run_id)

    def abort(self, run_id: str, reason: str = ABORT_REASON) -> ControlReceipt:
        """See `Client.abort`."""
        return self._loop.call(self._client.abort, run_id, reason)

    def close(self) -> None:
        """Close the connections and end the thread; calls that wait get an error."""
        self._loop.close(self._client.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


async def _nothing() -> None:
    """Leave a loop in which no client was made."""
