"""The way in for synchronous code, such as Django or Flask: the same verbs, blocking."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Self

from runlane.journal.holds import HeldLane
from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.settings import Settings
from runlane.journal.transfer.imported import ImportReport
from runlane.journal.tree import BranchInfo, SessionCheckout, SessionRetry
from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.control import ControlReceipt
from runlane.journal.wire.events import Event
from runlane.journal.wire.jobs import FollowUpFailurePolicy
from runlane.journal.wire.messages import ContextMessage
from runlane.journal.wire.records import AnyBody, Record
from runlane.journal.wire.results import AgentRunResult
from runlane.producer.background_loop import BackgroundLoop
from runlane.producer.client import Client
from runlane.producer.exporting import ExportReport
from runlane.producer.files import Place, Progress
from runlane.producer.handles import ABORT_REASON, RunHandle
from runlane.producer.importing import FileFormat
from runlane.producer.overview import SessionInfo, SessionStatus
from runlane.producer.runs import RunInfo
from runlane.producer.session import STEAL_REASON, Session


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

    def runtime(
        self,
        task: str,
        *,
        idempotency_key: str | None = None,
        version: str | None = None,
        timeout: float | None = None,
    ) -> str | None:
        """See `Session.runtime`."""
        return self._loop.call(
            self._session.runtime,
            task,
            idempotency_key=idempotency_key,
            version=version,
            timeout=timeout,
        )

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

    def steer(self, content: str) -> ControlReceipt:
        """See `Session.steer`."""
        return self._loop.call(self._session.steer, content)

    def abort(self, reason: str = ABORT_REASON) -> ControlReceipt:
        """See `Session.abort`."""
        return self._loop.call(self._session.abort, reason)

    def steal(self, reason: str = STEAL_REASON) -> ControlReceipt:
        """See `Session.steal`."""
        return self._loop.call(self._session.steal, reason)

    def delete(self) -> None:
        """See `Session.delete`."""
        self._loop.call(self._session.delete)

    @contextmanager
    def hold(self, *, timeout: float | None = None) -> Generator["SyncHeldLane", None, None]:
        """See `Session.hold`; a `with` block."""
        held = self._session.hold(timeout=timeout)
        lane = SyncHeldLane(self._loop, self._loop.call(held.__aenter__))

        def leave(
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
        ) -> bool | None:
            return self._loop.call(held.__aexit__, kind, error, trace)

        with ExitStack() as leaving:
            leaving.push(leave)
            yield lane

    def events(self, after: str | None = None) -> Iterator[Event]:
        """See `Session.events`; waits for the next event without end."""
        return self._loop.iterate(self._session.events(after))

    def messages(self) -> list[ContextMessage]:
        """See `Session.messages`."""
        return self._loop.call(self._session.messages)

    def records(self, *, newest_first: bool = False) -> Iterator[Record]:
        """See `Session.records`."""
        return self._loop.iterate(self._session.records(newest_first=newest_first))

    def blob(self, blob: BlobRef | str) -> bytes:
        """See `Session.blob`."""
        return self._loop.call(self._session.blob, blob)

    def head(self) -> str | None:
        """See `Session.head`."""
        return self._loop.call(self._session.head)

    def checkout(self, record_id: str | None = None) -> SessionCheckout:
        """See `Session.checkout`."""
        return self._loop.call(self._session.checkout, record_id)

    def list_branches(self) -> list[BranchInfo]:
        """See `Session.list_branches`."""
        return self._loop.call(self._session.list_branches)

    def fork(self, record_id: str | None = None, *, name: str | None = None) -> Self:
        """See `Session.fork`."""
        return type(self)(self._loop, self._loop.call(self._session.fork, record_id, name=name))

    def rollback(self, record_id: str, *, name: str | None = None) -> Self:
        """See `Session.rollback`."""
        return type(self)(self._loop, self._loop.call(self._session.rollback, record_id, name=name))

    def prepare_retry(self, run_id: str, *, name: str | None = None) -> SessionRetry:
        """See `Session.prepare_retry`."""
        return self._loop.call(self._session.prepare_retry, run_id, name=name)

    def promote(self) -> str:
        """See `Session.promote`."""
        return self._loop.call(self._session.promote)

    def export_jsonl(self, target: Place, *, progress: Progress | None = None) -> ExportReport:
        """See `Session.export_jsonl`; `progress` is called in another thread."""
        return self._loop.call(self._session.export_jsonl, target, progress=progress)

    def import_jsonl(
        self,
        source: Place,
        *,
        file_format: FileFormat = "ejagent",
        progress: Progress | None = None,
    ) -> ImportReport:
        """See `Session.import_jsonl`; `progress` is called in another thread."""
        return self._loop.call(
            self._session.import_jsonl, source, file_format=file_format, progress=progress
        )

    def status(self) -> SessionStatus:
        """See `Session.status`."""
        return self._loop.call(self._session.status)


class SyncHeldLane:
    """`HeldLane`, blocking."""

    def __init__(self, loop: BackgroundLoop, lane: HeldLane) -> None:
        self._loop = loop
        self._lane = lane

    @property
    def head(self) -> str | None:
        """See `HeldLane.head`."""
        return self._lane.head

    def append(self, *bodies: AnyBody) -> str:
        """See `HeldLane.append`."""
        return self._loop.call(self._lane.append, *bodies)

    def checkout(self) -> SessionCheckout:
        """See `HeldLane.checkout`."""
        return self._loop.call(self._lane.checkout)


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
