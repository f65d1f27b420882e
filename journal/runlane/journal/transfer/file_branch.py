"""A branch of a journal of EJAgent: what may come next on it, and the records that this gives."""

from dataclasses import dataclass

import msgspec

from runlane.journal.transfer.breach import BreachError
from runlane.journal.transfer.ejagent_documents import (
    DOCUMENT_FORMAT,
    FileDocument,
    FileSession,
    canonical,
)
from runlane.journal.transfer.ejagent_lines import (
    CheckpointData,
    CompactionData,
    Data,
    Line,
    MessageData,
    MessagesData,
    RunContinuedData,
    RunFinishedData,
    RunStartedData,
    SteeringData,
)
from runlane.journal.transfer.file_run import FileRun
from runlane.journal.transfer.gathering import Gathering
from runlane.journal.transfer.names import run_id_of
from runlane.journal.transfer.transcript import Transcript
from runlane.journal.wire.messages import ContextMessage
from runlane.journal.wire.records import AnyBody, RunFinished
from runlane.journal.wire.results import AgentRunResult, StopReason
from runlane.journal.wire.tree import CompactionApplied, HistoryImported

_UNFINISHED = "the run was unfinished in the imported file"
_REPLACED = "a checkpoint of the imported file replaced the history of the run"


@dataclass(frozen=True, slots=True)
class Point:
    """A branch as of one line, as far as a branch that begins there must know.

    Attributes:
        entry: The place of the last record on the path; None if there is none.
        agent_id: The agent that the path is bound to.
        since: The node of the last checkpoint on the path, or of its first line: names that
            were given before it do not count.
        run_id: The run that is open, as the file names it.
    """

    entry: int | None = None
    agent_id: str | None = None
    since: int = 0
    run_id: str | None = None


class FileBranch:
    """A branch, fed line by line.

    Attributes:
        name: Its name here.
    """

    def __init__(self, name: str, base: Point, gathering: Gathering) -> None:
        self.name = name
        self._gathering = gathering
        self._entry = base.entry
        self._agent_id = base.agent_id
        self._since = base.since
        self._run: FileRun | None = None

    @property
    def point(self) -> Point:
        """The branch as of its last line."""
        run_id = self._run.file_id if self._run else None
        return Point(self._entry, self._agent_id, self._since, run_id)

    def bind(self, agent_id: str | None) -> None:
        """Check the agent of the next line, and keep to it from then on.

        Raises:
            BreachError: The branch belongs to another one.
        """
        if self._agent_id is not None and agent_id != self._agent_id:
            raise BreachError(f"agent_id changes from {self._agent_id!r} to {agent_id!r}")
        self._agent_id = agent_id and agent_id.strip()

    def apply(self, line: Line, data: Data, node: int) -> None:
        """Apply a line that stands at `node` of the tree.

        Raises:
            BreachError: It may not follow.
        """
        match data:
            case RunStartedData(run_id, task):
                self._begin(run_id, task, line.sequence, node)
            case RunContinuedData(run_id):
                self._begin(run_id, None, line.sequence, node)
            case MessageData(run_id, message):
                self.emit(*self._open_run(run_id).add(message, line.sequence))
            case MessagesData(run_id, messages):
                for message in messages:
                    self.emit(*self._open_run(run_id).add(message, line.sequence))
            case SteeringData():
                self.emit(self._open_run(data.run_id).steer(data, line.sequence))
            case CompactionData():
                self._compact(line, data, node)
            case RunFinishedData():
                self._finish(line, data)
            case CheckpointData():
                self._restore(line, data, node)
            case _:
                pass

    def emit(self, *bodies: AnyBody) -> None:
        """Append records to the branch."""
        for body in bodies:
            self._entry = self._gathering.append(self.name, self._entry, body)

    def close(self, reason: StopReason = StopReason.WORKER_LOST, error: str = _UNFINISHED) -> None:
        """End the run that is open, if there is one."""
        if self._run is not None:
            self._end(self._run, self._run.cut_short(reason, error))
            self._gathering.closed_runs += 1

    def _open_run(self, run_id: str) -> FileRun:
        if self._run is None or self._run.file_id != run_id:
            raise BreachError(f"run {run_id!r} is unknown or finished")
        return self._run

    def _begin(self, run_id: str, task: str | None, sequence: int, node: int) -> None:
        if self._gathering.find_run(run_id, node, self._since) is not None:
            raise BreachError(f"run {run_id!r} exists already")
        if self._run is not None:
            raise BreachError(f"run {self._run.file_id!r} is unfinished")
        if sequence == 0:
            raise BreachError("sequence is 0")
        self._run = FileRun(run_id, self._gathering.begin_run(run_id, node), sequence)
        self.emit(self._run.started(self._agent_id or "", task))

    def _finish(self, line: Line, data: RunFinishedData) -> None:
        run = self._open_run(data.run_id)
        if line.sequence <= run.sequence:
            raise BreachError(f"sequence {line.sequence} does not come after {run.sequence}")
        self._end(run, data.result.to_result())

    def _end(self, run: FileRun, result: AgentRunResult) -> None:
        self.emit(*run.abandon())
        self.emit(RunFinished(run_id=run.run_id, branch_id=self.name, result=result))
        self._run = None

    def _compact(self, line: Line, data: CompactionData, node: int) -> None:
        if line.sequence == 0:
            raise BreachError("sequence is 0")
        if not self._gathering.compact(data.operation_id, node, self._since):
            raise BreachError(f"compaction {data.operation_id!r} exists already")
        transcript = Transcript(message.to_message() for message in data.messages)
        self.emit(
            CompactionApplied(
                operation_id=data.operation_id,
                summary=data.summary.to_summary(),
                messages=self._messages_of(transcript, run_open=self._run is not None),
            )
        )

    def _restore(self, line: Line, data: CheckpointData, node: int) -> None:
        session = msgspec.json.decode(data.document, type=FileDocument).session
        if session.session_id.strip() != line.session_id:
            raise BreachError("the document is of another session")
        if (session.agent_id and session.agent_id.strip()) != line.agent_id:
            raise BreachError("the document is of another agent")
        self._since = node
        for run in session.runs:
            self._gathering.know_run(run.run_id, node, run_id_of(run.run_id))
        for compaction in session.compactions:
            self._gathering.compact(compaction.operation_id, node, node)
        if self._entry is not None or not session.empty:
            self._import(session, canonical(msgspec.json.decode(data.document)), node)

    def _import(self, session: FileSession, document: str, node: int) -> None:
        self.close(StopReason.SUPERSEDED, _REPLACED)
        transcript = Transcript(session.messages())
        unfinished = session.open_run
        self.emit(
            HistoryImported(
                format=DOCUMENT_FORMAT,
                document=document,
                messages=self._messages_of(transcript, run_open=unfinished is not None),
                last_run=session.last_run,
            )
        )
        if unfinished is not None:
            file_id = unfinished.run_id
            run_id = self._gathering.begin_run(file_id, node)
            sequence, calls = session.last_sequence(unfinished), transcript.unanswered
            self._run = FileRun(file_id, run_id, sequence, unanswered=calls)
            self.emit(self._run.started(self._agent_id or "", None))

    def _messages_of(self, transcript: Transcript, *, run_open: bool) -> tuple[ContextMessage, ...]:
        self._gathering.left_out += transcript.dropped
        return tuple(transcript.messages(run_open=run_open))
