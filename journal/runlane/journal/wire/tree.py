"""Records that shape a branch: where it comes from, and what stands for its history."""

from enum import StrEnum

from msgspec import Struct

from runlane.journal.wire.bodies import Body, RunBody
from runlane.journal.wire.messages import ContextMessage
from runlane.journal.wire.results import RunUsage, StopReason


class BranchIntent(StrEnum):
    """Why a branch was made."""

    FORK = "fork"
    ROLLBACK = "rollback"
    RETRY = "retry"
    LOST = "lost"


class BranchCreated(Body, frozen=True, kw_only=True):
    """A branch begins. The parent of this record is its base: none for an empty branch.

    Attributes:
        intent: Why it was made.
        source_branch_id: The branch that the base was looked up on.
        retried_run_id: The run whose task is to be given again; for a retry only.
    """

    intent: BranchIntent
    source_branch_id: str
    retried_run_id: str | None = None


class BranchPromoted(Body, frozen=True, kw_only=True):
    """The branch goes on from the head of another one, which is the parent of this record.

    Attributes:
        source_branch_id: The branch that it follows.
        previous_head_id: Its own head before; empty if it had no record.
    """

    source_branch_id: str
    previous_head_id: str


class Jump(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="jump"):
    """Where a branch goes on from, as it is kept beside the journal.

    Attributes:
        branch_id: The branch.
        base_id: Record id that it goes on from; empty for an empty branch.
        base_branch_id: The branch of that record.
        source_branch_id: The branch that the base was looked up on.
        intent: Why the branch was made; None if it existed before and was promoted.
        retried_run_id: The run whose task is to be given again; for a retry only.
    """

    branch_id: str
    base_id: str
    base_branch_id: str
    source_branch_id: str
    intent: BranchIntent | None = None
    retried_run_id: str | None = None


class SummaryEntry(Struct, frozen=True, kw_only=True):
    """What a compaction put in the place of older messages.

    Attributes:
        content: The summary.
        source: Who wrote it.
        history_start_index: Place of the first summarised message.
        first_kept_index: Place of the first message that was kept; after the former.
        summarized_message_count: Messages that this and earlier summaries stand for.
        tokens_before: Estimated tokens of the history before.
    """

    content: str
    source: str
    history_start_index: int
    first_kept_index: int
    summarized_message_count: int
    tokens_before: int


class MessagesAppended(RunBody, frozen=True, kw_only=True):
    """Messages that no model turn and no tool call of a worker produced."""

    messages: tuple[ContextMessage, ...]


class SteeringApplied(RunBody, frozen=True, kw_only=True):
    """The user said something while the run went on.

    Attributes:
        input_id: What the receipt of the input named.
        content: What was said.
        target_turn: The first turn that hears it.
    """

    input_id: str
    content: str
    target_turn: int


class Repeated(Struct, frozen=True, omit_defaults=True):
    """The last tool call that was asked for, and how many times in a row it was.

    Attributes:
        signature: A digest of its name and arguments; empty before the first call.
        count: 0 before the first call.
    """

    signature: str = ""
    count: int = 0


class OpenRunState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run that goes on across a checkpoint, between two of its turns.

    Attributes:
        run_id: The run.
        base_id: Record id of the record before its first one; empty if there is none.
        turn: Model responses so far.
        usage: Tokens so far.
        task: What it was asked to do; None for one that continues.
        tool_calls: Tool calls that were asked for so far.
        without_tools: Responses in a row without a tool call, and nobody spoke after them.
        repeated: The last call that was asked for, and how often in a row.
        counters: What middlewares have counted.
        first_message: Place in the transcript where the run began.
        heard: Ids of what was said to it since its last response.
    """

    run_id: str
    base_id: str
    turn: int = 0
    usage: RunUsage = RunUsage()
    task: str | None = None
    tool_calls: int = 0
    without_tools: int = 0
    repeated: Repeated = Repeated()
    counters: dict[str, int] = {}
    first_message: int = 0
    heard: tuple[str, ...] = ()


class Spent(Struct, frozen=True, omit_defaults=True):
    """What the whole history of a branch has cost.

    Attributes:
        usage: Tokens of all responses.
        turns: How many responses those were.
        tool_calls: Tool calls that were asked for in them.
    """

    usage: RunUsage = RunUsage()
    turns: int = 0
    tool_calls: int = 0


class LastRun(Struct, frozen=True):
    """The run that ended last on a branch."""

    run_id: str
    stop_reason: StopReason


class CompactionApplied(Body, frozen=True, kw_only=True):
    """From here on the model reads `messages` in the place of all that came before.

    With the state of the branch it is a checkpoint too: nothing before it need be read.

    Attributes:
        operation_id: What the compaction was asked for as.
        summary: What stands for the older messages.
        messages: The summary and what was kept, as the model reads them.
        last_run: The run that ended last.
        open_run: The run in which it happened, between two turns; None between two runs.
        spent: What the history before has cost.
    """

    operation_id: str
    summary: SummaryEntry
    messages: tuple[ContextMessage, ...]
    last_run: LastRun | None = None
    open_run: OpenRunState | None = None
    spent: Spent = Spent()


class Checkpoint(Body, frozen=True, kw_only=True):
    """All that a worker must know of the branch up to here; nothing before it need be read.

    It repeats what the records before it say, and adds nothing.

    Attributes:
        messages: The transcript.
        last_run: The run that ended last.
        open_run: The run that goes on; None between two runs.
        spent: What the history before has cost.
        foreign: Whether some of the messages come from elsewhere, and may not fit a model.
    """

    messages: tuple[ContextMessage, ...]
    last_run: LastRun | None = None
    open_run: OpenRunState | None = None
    spent: Spent = Spent()
    foreign: bool = False


class HistoryImported(Body, frozen=True, kw_only=True):
    """A document of another system stands for all that came before on this branch.

    Attributes:
        format: Which system's.
        document: Its JSON text, as it was read.
        messages: The transcript in it.
        last_run: The run in it that ended last.
    """

    format: str
    document: str
    messages: tuple[ContextMessage, ...]
    last_run: LastRun | None = None
