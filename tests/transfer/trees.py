"""Sessions as our workers and clients leave them: several branches, every kind of record."""

from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

from tests.transfer.folding import Records

from runlane.journal.projection import Projection
from runlane.journal.transfer.ejagent_documents import DOCUMENT_FORMAT, canonical, document_of
from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    ModelToolCall,
    ModelUsage,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.records import (
    CONTROL_BRANCH,
    AbortRequested,
    AnyBody,
    AttemptCause,
    AttemptStarted,
    MessageAppended,
    RunContinued,
    RunFinished,
    RunQueued,
    RunStarted,
    SteeringDiscarded,
    ToolCompleted,
    ToolOutcome,
    ToolStarted,
)
from runlane.journal.wire.results import AgentRunResult, RunStatus, RunUsage, StopReason
from runlane.journal.wire.tree import (
    BranchCreated,
    BranchIntent,
    BranchPromoted,
    CompactionApplied,
    HistoryImported,
    LastRun,
    MessagesAppended,
    SteeringApplied,
    SummaryEntry,
)

TEXTS = (
    "",
    "plain",
    "Grüße ☕",
    "two\nlines\r\n\u2028and more",
    'a "quote" \\ and \x00\x7f',
    '{"status": "error", "tool": "look", "error": "x"}',
)
IDS = ("c1", "c1", "c2", "")
"""Providers repeat and omit call ids."""


@dataclass
class Tree:
    """A session that grows at random, by the rules of our journals.

    Attributes:
        records: What has been appended.
        open: Branches on which a run is open.
        promoted: Whether `main` ever followed another branch.
    """

    random: Random
    records: Records = field(default_factory=Records)
    open: set[str] = field(default_factory=set[str])
    promoted: bool = False
    _runs: int = 0

    def grow(self, steps: int) -> None:
        """Do some things; a run may be left open."""
        choices = (
            *(self.run, self.run, self.run, self.branch, self.branch, self.compact),
            *(self.promote, self.restore, self.never_began, self.checkpoint_anywhere),
        )
        for _ in range(steps):
            self.random.choice(choices)()

    def text(self) -> str:
        return self.random.choice(TEXTS)

    def idle(self) -> list[str]:
        branches = ["main", *(name for name in self.records.branches if name != "main")]
        return [branch for branch in branches if branch not in self.open]

    def run(self) -> None:
        """Run to the end, or not quite."""
        if not self.idle():
            return
        run = _Run(self, self.random.choice(self.idle()), self.new_run_id())
        run.begin()
        for _ in range(self.random.randint(0, 3)):
            run.turn()
        if self.random.random() < 0.15:
            self.open.add(run.branch)
        else:
            run.end()

    def never_began(self) -> None:
        """A run is aborted while it waits: it has no record on its branch."""
        run_id = self.new_run_id()
        abort = AbortRequested(run_id=run_id, branch_id="main", reason="no")
        self.records.add(CONTROL_BRANCH, abort)
        end = RunFinished(run_id=run_id, branch_id="main", result=self.result())
        self.records.add(CONTROL_BRANCH, end)

    def branch(self) -> None:
        """Begin a branch at a finished record of the path of another one."""
        source = self.random.choice(self.records.branches or ["main"])
        head = self.records.heads.get(source)
        bases: list[tuple[str, str | None]] = [("", None)]
        projection = Projection()
        for record in self.records.path(head.record_id) if head else ():
            if isinstance(record.body, RunStarted):
                bases.append((record.parent_id, record.body.run_id))
            projection.add(record.body, record.parent_id)
            if projection.open_run is None:
                bases.append((record.record_id, None))
        base, retried = self.random.choice(bases)
        intents = (BranchIntent.FORK, BranchIntent.ROLLBACK, BranchIntent.LOST)
        body = BranchCreated(
            intent=BranchIntent.RETRY if retried else self.random.choice(intents),
            source_branch_id=source,
            retried_run_id=retried,
        )
        self.records.add(f"b{len(self.records.all)}", body, base)

    def promote(self) -> None:
        """Let main go on from the head of another branch."""
        followed = [branch for branch in self.idle() if branch != "main"]
        if not followed or "main" in self.open:
            return
        source = self.random.choice(followed)
        head = self.records.heads.get("main")
        body = BranchPromoted(
            source_branch_id=source, previous_head_id=head.record_id if head else ""
        )
        self.records.add("main", body, self.records.heads[source].record_id)
        self.promoted = True

    def compact(self) -> None:
        """Put a summary in the place of the older messages of an idle branch."""
        branch = self.random.choice(self.idle() or [""])
        messages = self.records.project_branch(branch).messages if branch else []
        starts = [n for n, message in enumerate(messages) if isinstance(message, UserMessage)]
        if starts:
            self.records.add(branch, self.compaction(messages[self.random.choice(starts) :]))

    def compaction(self, kept: list[ContextMessage]) -> CompactionApplied:
        content = f"summary {len(self.records.all)}"
        system = SystemMessage(f"Conversation summary from earlier turns:\n\n{content}")
        return CompactionApplied(
            operation_id=f"op{len(self.records.all)}",
            summary=SummaryEntry(
                content=content,
                source="model",
                history_start_index=0,
                first_kept_index=1 + self.random.randint(0, 9),
                summarized_message_count=1,
                tokens_before=9,
            ),
            messages=(system, *kept),
        )

    def restore(self) -> None:
        """Import the document of another system."""
        if not self.idle():
            return
        messages: list[ContextMessage] = [UserMessage("old"), AssistantMessage("older")]
        last_run = LastRun(self.new_run_id(), self.random.choice(list(StopReason)))
        kind = self.random.choice((DOCUMENT_FORMAT, "another"))
        body = HistoryImported(
            format=kind,
            document=canonical(document_of("there", "b", messages, last_run)),
            messages=tuple(messages),
            last_run=last_run,
        )
        self.records.add(self.random.choice(self.idle()), body)

    def checkpoint_anywhere(self) -> None:
        """Write one on an idle branch."""
        if self.idle():
            self.checkpoint(self.random.choice(self.idle()))

    def checkpoint(self, branch: str) -> None:
        """Write what a worker needs, so that it need not read further back."""
        checkpoint = self.records.project_branch(branch).checkpoint()
        if checkpoint is not None:
            self.records.add(branch, checkpoint)

    def new_run_id(self) -> str:
        self._runs += 1
        return str(UUID(int=self._runs))

    def result(self, output: str | None = None) -> AgentRunResult:
        reason = self.random.choice(list(StopReason))
        read, written, sent = (self.random.randint(0, 99) for _ in range(3))
        completed = reason.status is RunStatus.COMPLETED
        return AgentRunResult(
            status=reason.status,
            stop_reason=reason,
            turns=self.random.randint(0, 9),
            output=output,
            error=None if completed else self.random.choice((None, self.text())),
            usage=RunUsage(
                input_tokens=read,
                output_tokens=written,
                cache_read_tokens=self.random.choice((None, 0, read)),
                reasoning_tokens=self.random.choice((None, written)),
                request_count=sent,
                reported_request_count=self.random.randint(0, sent),
            ),
        )


@dataclass
class _Run:
    """A run of a tree."""

    tree: Tree
    branch: str
    run_id: str
    turns: int = 0
    attempt: int = 1

    def begin(self) -> None:
        queued = RunQueued(run_id=self.run_id, branch_id=self.branch, intent="run", agent="a")
        self.tree.records.add(CONTROL_BRANCH, queued)
        about: dict[str, Any] = {"agent": "a", "version": "1", "worker_id": "w"}
        if self.tree.random.random() < 0.3:
            self.add(RunContinued(run_id=self.run_id, attempt=1, **about))
        else:
            message = UserMessage(self.tree.text() or "task")
            self.add(RunStarted(run_id=self.run_id, attempt=1, message=message, **about))

    def turn(self) -> None:
        """Hear, compact, answer and call tools; in the last turn, not all of them end."""
        self.turns += 1
        chance = self.tree.random.random
        if chance() < 0.3:
            steering = {"input_id": f"i{self.turns}", "content": self.tree.text()}
            self.add(SteeringApplied(run_id=self.run_id, target_turn=self.turns, **steering))
        if chance() < 0.2:
            self.add(self.tree.compaction([UserMessage("kept")]))
        if chance() < 0.2:
            self.tree.checkpoint(self.branch)
        calls = tuple(
            ModelToolCall(self.tree.random.choice(IDS), "look", '{"q":1}')
            for _ in range(self.tree.random.randint(0, 3))
        )
        content = self.tree.random.choice((None, self.tree.text()))
        usage = self.tree.random.choice((None, ModelUsage(9, 5, cache_read_tokens=3)))
        message = AssistantMessage(content, tool_calls=calls)
        place: dict[str, Any] = {"run_id": self.run_id, "turn": self.turns, "attempt": self.attempt}
        self.add(MessageAppended(**place, message=message, usage=usage))
        for index, call in self.tree.random.sample(list(enumerate(calls)), len(calls)):
            self.call(call, place | {"index": index})
        if chance() < 0.2:
            messages = (SystemMessage(self.tree.text()), UserMessage(self.tree.text()))
            self.add(MessagesAppended(run_id=self.run_id, messages=messages))

    def call(self, call: ModelToolCall, place: dict[str, Any]) -> None:
        self.add(ToolStarted(**place, call=call, operation_key="k", effect="idempotent"))
        if self.tree.random.random() < 0.2:
            self.attempt += 1
            again: dict[str, Any] = {"attempt": self.attempt, "cause": AttemptCause.CRASH}
            self.add(AttemptStarted(run_id=self.run_id, worker_id="v", **again))
        outcome = self.tree.random.choice(list(ToolOutcome))
        result = ToolMessage(
            tool_call_id=call.id,
            tool_name=call.name,
            content=self.tree.text(),
            is_error=outcome is not ToolOutcome.OK,
        )
        self.add(ToolCompleted(**place, outcome=outcome, message=result))

    def end(self) -> None:
        """End; sometimes with a response whose calls have no results."""
        place: dict[str, Any] = {"run_id": self.run_id, "attempt": self.attempt}
        output = self.tree.text()
        calls = tuple(ModelToolCall("c9", "look") for _ in range(self.tree.random.randint(0, 2)))
        message = AssistantMessage(output, tool_calls=calls)
        in_parent = self.tree.random.random() < 0.7
        if in_parent:
            self.add(MessageAppended(**place, turn=self.turns + 1, message=message))
        result = self.tree.result(None if in_parent else output)
        if not in_parent and self.tree.random.random() < 0.5:
            given: dict[str, Any] = {"input_id": "i0", "content": "late"}
            given |= {"reason": result.stop_reason}
            self.add(SteeringDiscarded(run_id=self.run_id, branch_id=self.branch, **given))
        self.add(
            RunFinished(
                run_id=self.run_id,
                branch_id=self.branch,
                result=result,
                output_in_parent=in_parent,
            )
        )

    def add(self, body: AnyBody) -> None:
        self.tree.records.add(self.branch, body)


def tree_of(random: Random) -> Tree:
    """Return a session of up to a dozen steps."""
    tree = Tree(random)
    tree.never_began()
    tree.grow(random.randint(1, 12))
    return tree
