"""One branch of a conversation as its journal has it: read it, and branch it."""

from collections.abc import AsyncGenerator
from typing import Self

from runlane.journal import tree
from runlane.journal.blobs import read_blob
from runlane.journal.errors import UnknownSessionError
from runlane.journal.reader import read_records, read_records_back
from runlane.journal.transfer.imported import ImportReport
from runlane.journal.tree import BranchInfo, SessionCheckout, SessionRetry
from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.messages import ContextMessage
from runlane.journal.wire.records import Record
from runlane.journal.wire.tree import BranchIntent
from runlane.producer.admission import (
    check_any_run,
    check_digest,
    check_new_branch,
    check_record,
)
from runlane.producer.deployment import Deployment
from runlane.producer.exporting import ExportReport, export_session
from runlane.producer.files import Place, Progress
from runlane.producer.importing import FileFormat, import_session


class SessionJournal:
    """What a session's journal holds, and the tree of its branches.

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

    def records(self, *, newest_first: bool = False) -> AsyncGenerator[Record, None]:
        """Return all records of the session, all branches, read page by page.

        Args:
            newest_first: From the last record back to the first, or the other way.

        Raises:
            UndecodableError: A record is damaged or of a newer version.
            ArchiveError: Archived records cannot be read.
            ServerUnavailableError: The server is away.
        """
        read = read_records_back if newest_first else read_records
        return read(self._partition, self.session_id)

    async def messages(self) -> list[ContextMessage]:
        """Return the transcript of the branch, oldest message first; empty before the first run.

        Raises:
            UnknownBranchError: The session has no such branch.
            SessionClosedError: The session is being deleted.
            RecordMissingError: The journal lacks a record that it leads to.
            UndecodableError: A record is damaged or of a newer version.
            ArchiveError: Archived records cannot be read.
            ServerUnavailableError: The server is away.
        """
        try:
            return (await self.checkout()).messages
        except UnknownSessionError:
            return []

    async def blob(self, blob: BlobRef | str) -> bytes:
        """Return content that is kept beside the journal: all of a tool result, or a file of it.

        Args:
            blob: What a `tool_completed` record names as `full` or in a block, or its digest.

        Raises:
            InvalidInputError: It is no digest.
            UnknownBlobError: The session does not keep it.
            UndecodableError: It is damaged.
            ArchiveError: The archive cannot be read.
            ServerUnavailableError: The server is away.
        """
        digest = blob.digest if isinstance(blob, BlobRef) else blob
        return await read_blob(self._partition, self.session_id, check_digest(digest))

    async def head(self) -> str | None:
        """Return the record id of the branch's last record; None if it has none.

        Raises:
            UnknownSessionError: There is no such session.
            UnknownBranchError: It has no such branch.
            ServerUnavailableError: The server is away.
        """
        return await tree.read_head(self._partition, self.session_id, self.branch_id) or None

    async def checkout(self, record_id: str | None = None) -> SessionCheckout:
        """Return the session as of a record, of whatever branch; nothing changes.

        Args:
            record_id: The record; None for the head of this branch.

        Raises:
            InvalidInputError: The record id is malformed.
            UnknownSessionError: There is no such session.
            UnknownBranchError: It has no such branch.
            UnknownRecordError: None of its branches has such a record.
            SessionClosedError: The session is being deleted.
            RecordMissingError: The journal lacks a record that it leads to.
            UndecodableError: A record is damaged or of a newer version.
            ArchiveError: Archived records cannot be read.
            ServerUnavailableError: The server is away.
        """
        return await tree.check_out(
            self._partition, self.session_id, self.branch_id, check_record(record_id)
        )

    async def list_branches(self) -> list[BranchInfo]:
        """Return all branches of the session, in the order in which they were made.

        Raises:
            UnknownSessionError: There is no such session.
            ServerUnavailableError: The server is away.
        """
        return await tree.list_branches(self._partition, self.session_id)

    async def fork(self, record_id: str | None = None, *, name: str | None = None) -> Self:
        """Begin a branch that goes on from this one; return a handle on it.

        Both branches are lanes of their own from here on.

        Args:
            record_id: A record on the way to the head of this branch; None for the head or,
                while a run is open there, for the record before that run.
            name: Of the new branch; None makes one up.

        Raises:
            InvalidInputError: The record id or the name is malformed, or begins with `lost-`.
            UnknownSessionError: There is no such session.
            UnknownBranchError: It has no such branch.
            UnknownRecordError: None of its branches has such a record.
            NotAncestorError: The record does not lead to the head of this branch.
            UnfinishedRunError: A run is open at the record.
            BranchExistsError: The name is taken.
            SessionClosedError: The session is being deleted or imported.
            RecordMissingError: The journal lacks a record that it leads to.
            UndecodableError: A record is damaged or of a newer version.
            ArchiveError: Archived records cannot be read.
            ServerUnavailableError: The server is away.
        """
        return await self._fork(BranchIntent.FORK, check_record(record_id), name)

    async def rollback(self, record_id: str, *, name: str | None = None) -> Self:
        """Begin a branch at an earlier record of this one, which stays as it is.

        `promote` on the new branch makes `main` go on from there.

        Args:
            record_id: A record on the way to the head of this branch.
            name: Of the new branch; None makes one up.

        Raises:
            RunlaneError: As `fork` does.
        """
        return await self._fork(BranchIntent.ROLLBACK, check_record(record_id), name)

    async def prepare_retry(self, run_id: str, *, name: str | None = None) -> SessionRetry:
        """Begin a branch as of before a run, and return the run's task; nothing is executed.

        Args:
            run_id: The run, of whatever branch; it began with a task. One that is not known by
                its id any more, or that was imported, is looked for on this branch.
            name: Of the new branch; None makes one up.

        Raises:
            InvalidInputError: The run id or the name is malformed, or begins with `lost-`.
            UnknownSessionError: There is no such session.
            UnknownBranchError: It has no such branch.
            UnknownRunError: The run is of another session, or not known by its id any more and
                not on this branch.
            RetryRejectedError: The run has not begun, or continued another one.
            BranchExistsError: The name is taken.
            SessionClosedError: The session is being deleted or imported.
            RecordMissingError: The journal lacks a record that it leads to.
            UndecodableError: A record is damaged or of a newer version.
            ArchiveError: Archived records cannot be read.
            ServerUnavailableError: The server is away.
        """
        return await tree.prepare_retry(
            self._partition,
            self.session_id,
            check_any_run(run_id),
            branch_id=self.branch_id,
            name=check_new_branch(name),
        )

    async def promote(self) -> str:
        """Let `main` go on from the head of this branch; return the record id of its new head.

        The records that `main` leaves behind stay readable; fork it before to keep a name for
        them.

        Raises:
            InvalidInputError: This is `main`.
            UnknownSessionError: There is no such session.
            UnknownBranchError: It has no such branch.
            LaneBusyError: A run is active in `main`, or it is held.
            UnfinishedRunError: A run is open on this branch.
            SessionConflictError: `main` moved meanwhile.
            SessionClosedError: The session is being deleted or imported.
            RecordMissingError: The journal lacks a record that it leads to.
            UndecodableError: A record is damaged or of a newer version.
            ArchiveError: Archived records cannot be read.
            ServerUnavailableError: The server is away.
        """
        return await tree.follow(self._partition, self.session_id, self.branch_id)

    async def export_jsonl(
        self, target: Place, *, progress: Progress | None = None
    ) -> ExportReport:
        """Write the session, all branches, as a journal that EJAgent loads and `import_jsonl` too.

        It holds what is in the session at the call; runs may go on meanwhile. What EJAgent has no
        word for is left out: queue and control records, attempts, starts of tools, and blobs.

        Args:
            target: A path, where the file appears once it is complete, readable for its owner
                only; or a file that is open for bytes, which stays open.
            progress: Called with the number of the last record that was read, and of the last
                that is to be.

        Raises:
            UnknownSessionError: There is no such session, or it was deleted meanwhile.
            SessionClosedError: It is being deleted.
            RecordMissingError: The journal lacks a record that others build on.
            UndecodableError: A record is damaged or of a newer version.
            ArchiveError: Archived records cannot be read.
            ServerUnavailableError: The server is away.
            OSError: The file cannot be written.
        """
        return await export_session(self._partition, self.session_id, target, progress=progress)

    async def import_jsonl(
        self,
        source: Place,
        *,
        file_format: FileFormat = "ejagent",
        progress: Progress | None = None,
    ) -> ImportReport:
        """Make this session of a file; it must not exist. Its runs can be continued and retried.

        The whole file is checked before anything is stored, and nobody sees anything of the
        session before it is complete. Runs that the file leaves unfinished end as `worker_lost`;
        imported runs are known by their records, not to `Client.status`. The session is bound to
        the agent of this handle, or to that of the file if workers here have served it, or else
        to that of its first run.

        Whoever is interrupted frees the name at once; after a process that was killed the server
        does, a minute later.

        Args:
            source: A path, or a file that is open for bytes, which stays open.
            file_format: `ejagent` for the JSON lines of EJAgent Core 0.6 and SimAgentPlg 0.5, and
                what `export_jsonl` writes; `tada` for the JSON of a session of tada-core.
            progress: Called with how many records are stored, and how many are to be.

        Raises:
            JournalFormatError: The file breaks its format; nothing was stored.
            InvalidInputError: The format is unknown; nothing was read.
            SessionExistsError: There is such a session, or somebody imports one.
            ImportLostError: The server has no more what was sent: import the file again.
            ServerUnavailableError: The server is away.
            OSError: The file cannot be read.
        """
        return await import_session(
            self._partition,
            self.session_id,
            source,
            file_format=file_format,
            agent=self.agent,
            progress=progress,
        )

    async def _fork(self, intent: BranchIntent, record_id: str | None, name: str | None) -> Self:
        branch_id = await tree.fork(
            self._partition,
            self.session_id,
            self.branch_id,
            intent=intent,
            record_id=record_id,
            name=check_new_branch(name),
        )
        return type(self)(self._deployment, self.session_id, branch_id, self.agent)
