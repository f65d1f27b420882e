"""What EJAgent's lines become."""

from uuid import UUID

import pytest
from tests.transfer.breaches import ACCEPTED
from tests.transfer.ejagent_files import (
    GOLDEN,
    SIMAGENTPLG,
    FileBuilder,
    Json,
    assistant,
    document,
    result,
    run_of,
    tool,
    usage,
    user,
)
from tests.transfer.folding import Records, records_of

from runlane.journal.transcript import ABANDONED_CALL
from runlane.journal.transfer.imported import ImportedJournal
from runlane.journal.transfer.jsonl_reader import read_jsonl
from runlane.journal.transfer.names import journal_file_name
from runlane.journal.wire.messages import (
    AssistantMessage,
    ModelToolCall,
    ModelUsage,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.records import (
    AnyBody,
    MessageAppended,
    RunContinued,
    RunFinished,
    RunStarted,
    ToolCompleted,
    ToolOutcome,
)
from runlane.journal.wire.results import RunStatus, RunUsage, StopReason
from runlane.journal.wire.tree import (
    BranchCreated,
    BranchIntent,
    HistoryImported,
    LastRun,
    MessagesAppended,
)


@pytest.fixture(scope="module")
def golden() -> ImportedJournal:
    with GOLDEN.open("rb") as file:
        return read_jsonl(file, session_id="golden")


def bodies(*messages: Json, ends: bool = True) -> list[AnyBody]:
    """Return the records of one run with these messages."""
    file = FileBuilder()
    file.add("run_started", 1, run_id="r1", task="t")
    for message in messages:
        file.add("messages_appended", 2, run_id="r1", messages=[message])
    if ends:
        file.add("run_finished", 3, run_id="r1", result=result())
    return [entry.body for entry in read_jsonl(file.encoded).entries]


def projected(records: Records, branch_id: str) -> list[str | None]:
    return [message.content for message in records.project_branch(branch_id).messages]


def test_files_are_named_by_their_session() -> None:
    assert journal_file_name("golden") == GOLDEN.name
    assert journal_file_name(" sim session ü ") == SIMAGENTPLG.name


def test_the_golden_journal_is_reported(golden: ImportedJournal) -> None:
    report = golden.report
    assert (golden.session_id, golden.agent_id) == ("golden", "a")
    assert (report.lines, report.branches, report.runs, report.closed_runs) == (13, 3, 2, 0)
    assert (report.torn, report.left_out, report.renamed_branches) == (False, 0, {})


def test_the_golden_journal_reads_as_its_library_reads_it(golden: ImportedJournal) -> None:
    records = records_of(golden)
    assert projected(records, "main") == ["imported"]
    assert projected(records, "again") == []
    assert projected(records, "back") == ["first", None, '{"ok": 1}', "steer", "ok"]
    compacted = next(record for record in records.all if record.kind == "compaction_applied")
    assert records.project(compacted.record_id).messages == [
        SystemMessage("Conversation summary from earlier turns:\n\nSUM"),
        AssistantMessage("more"),
    ]
    assert records.project_branch("main").last_run == LastRun("r9", StopReason.TEXT_RESPONSE)


def test_the_golden_branches_keep_their_reasons(golden: ImportedJournal) -> None:
    records = records_of(golden)
    created = {
        record.branch_id: (record.parent_id, record.body)
        for record in records.all
        if isinstance(record.body, BranchCreated)
    }
    base = next(record for record in records.all if record.kind == "run_finished")
    assert created == {
        "back": (
            base.record_id,
            BranchCreated(intent=BranchIntent.ROLLBACK, source_branch_id="main"),
        ),
        "again": (
            "",
            BranchCreated(intent=BranchIntent.RETRY, source_branch_id="main", retried_run_id="r1"),
        ),
    }


def test_the_golden_run_keeps_turns_usage_and_result(golden: ImportedJournal) -> None:
    start, response, tool_done, _, _, end, *_ = (entry.body for entry in golden.entries)
    assert isinstance(start, RunStarted)
    assert (start.agent, start.message) == ("a", UserMessage("first"))
    assert isinstance(response, MessageAppended)
    assert (response.turn, response.usage) == (1, ModelUsage(10, 5))
    assert response.message == AssistantMessage(None, tool_calls=(ModelToolCall("c1", "t", "{}"),))
    assert isinstance(tool_done, ToolCompleted)
    assert (tool_done.index, tool_done.outcome) == (0, ToolOutcome.OK)
    assert tool_done.message == ToolMessage("c1", "t", '{"ok": 1}')
    assert isinstance(end, RunFinished)
    assert end.result.usage == RunUsage(10, 5, request_count=1, reported_request_count=1)
    assert (end.result.status, end.result.output) == (RunStatus.COMPLETED, "ok")


def test_a_journal_of_simagentplg_is_read() -> None:
    with SIMAGENTPLG.open("rb") as file:
        imported = read_jsonl(file, session_id=" sim session ü")
    records = records_of(imported)
    (renamed,) = imported.report.renamed_branches.items()
    assert renamed[0] == "side branch"
    assert renamed[1].startswith("side-branch-")
    assert projected(records, "main") == [
        "Conversation summary from earlier turns:\n\nGrüße.",
        "Hallo ☕",
    ]
    assert projected(records, renamed[1])[-1] == "Noch etwas?"
    assert projected(records, "again") == []
    failed = next(record.body for record in records.all if isinstance(record.body, ToolCompleted))
    assert (failed.outcome, failed.message.is_error) == (ToolOutcome.ERROR, True)
    begun = [record.body.run_id for record in records.all if isinstance(record.body, RunStarted)]
    assert all(str(UUID(run_id)) == run_id for run_id in begun)


def test_the_last_line_may_be_torn() -> None:
    assert read_jsonl(ACCEPTED["torn last line"]).report.torn
    assert not read_jsonl(ACCEPTED["sample"]).report.torn


def test_a_line_may_give_several_records_or_none() -> None:
    file = FileBuilder()
    file.add("run_started", 1, run_id="r1", task="t")
    file.add("messages_appended", 2, run_id="r1", messages=[])
    messages = [assistant(None, "c1", "c2"), tool("c2"), tool("c1"), tool("c9"), user("x")]
    file.add("messages_appended", 3, run_id="r1", messages=messages)
    entries = read_jsonl(file.encoded).entries
    kinds = [type(entry.body) for entry in entries[1:-1]]
    assert kinds == [MessageAppended, ToolCompleted, ToolCompleted, *[MessagesAppended] * 2]
    assert [entry.parent for entry in entries] == [None, 0, 1, 2, 3, 4, 5]


def test_results_go_to_calls_of_their_id_in_turn() -> None:
    first, second, third = bodies(
        assistant(None, "c", "c"), tool("c", "one"), tool("c", "two"), tool("c", "three")
    )[2:5]
    assert isinstance(first, ToolCompleted)
    assert isinstance(second, ToolCompleted)
    assert (first.index, second.index) == (0, 1)
    assert isinstance(third, MessagesAppended)


@pytest.mark.parametrize(
    ("message", "outcome", "is_error"),
    [
        (tool("c", '{"status": "error", "tool": "look", "error": "x"}'), ToolOutcome.ERROR, True),
        (tool("c", '{"status": "rejected", "tool": "look"}'), ToolOutcome.ERROR, True),
        (tool("c", '{"status": "cancelled", "tool": "t"}'), ToolOutcome.CANCELLED, True),
        (tool("c", '{"status": "error"}'), ToolOutcome.OK, False),
        (tool("c", '{"status": broken'), ToolOutcome.OK, False),
        (tool("c") | {"is_error": True}, ToolOutcome.ERROR, True),
        (tool("c"), ToolOutcome.OK, False),
    ],
)
def test_what_came_of_a_call_is_read_from_its_text(
    message: Json, outcome: ToolOutcome, is_error: bool
) -> None:
    done = bodies(assistant(None, "c"), message)[2]
    assert isinstance(done, ToolCompleted)
    assert (done.outcome, done.message.is_error) == (outcome, is_error)
    assert done.message.tool_name == "look"


def test_a_name_on_a_result_is_kept() -> None:
    done = bodies(assistant(None, "c"), tool("c") | {"name": "peek"})[2]
    assert isinstance(done, ToolCompleted)
    assert done.message.tool_name == "peek"


def test_odd_messages_are_read_as_what_they_say() -> None:
    call = {"function": {"name": "look", "arguments": {"q": 1}}}
    response = bodies({"role": "assistant", "tool_calls": [call], "usage": {"total_tokens": True}})
    message = response[1]
    assert isinstance(message, MessageAppended)
    assert message.message.tool_calls == (ModelToolCall("", "look", '{"q":1}'),)
    assert message.usage is None
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert bodies({"role": "developer", "content": parts})[1] == MessagesAppended(
        run_id="r1", messages=(SystemMessage("ab"),)
    )


def test_a_run_left_open_is_closed_as_lost() -> None:
    file = FileBuilder()
    file.add("run_started", 1, run_id="r1", task="t")
    message = assistant("hm", "c1") | {"usage": usage()}
    file.add("message_appended", 2, run_id="r1", message=message)
    imported = read_jsonl(file.encoded)
    end = imported.entries[-1].body
    assert isinstance(end, RunFinished)
    assert (end.result.status, end.result.stop_reason) == (RunStatus.FAILED, StopReason.WORKER_LOST)
    assert (end.result.turns, end.result.usage.input_tokens) == (1, 10)
    assert end.result.error == "the run was unfinished in the imported file"
    assert imported.report.closed_runs == 1
    assert projected(records_of(imported), "main") == ["t", "hm", ABANDONED_CALL]


def test_run_ids_are_unique_in_the_import() -> None:
    imported = read_jsonl(ACCEPTED["run id again on a root branch"])
    begun = [
        entry.body.run_id
        for entry in imported.entries
        if isinstance(entry.body, RunStarted | RunContinued)
    ]
    assert len(set(begun)) == len(begun) == imported.report.runs == 3
    assert str(UUID(begun[-1])) == begun[-1]
    assert read_jsonl(ACCEPTED["run id again on a root branch"]) == imported


def test_a_document_keeps_its_text_and_mends_its_transcript() -> None:
    file = FileBuilder()
    messages = [user("x"), assistant(None, "c1", "c2"), tool("c2"), user("y"), tool("c9")]
    entries = [
        {"run_id": "r1", "sequence": number, "message": message}
        for number, message in enumerate(messages, 1)
    ]
    whole = document(entries=entries, runs=[run_of("r1")])
    file.add("checkpoint", document=whole)
    imported = read_jsonl(file.encoded)
    history = imported.entries[0].body
    assert isinstance(history, HistoryImported)
    assert history.format == "ejagent-1"
    assert file.encoded[0].count(history.document.encode()) == 1
    assert [message.content for message in history.messages] == [
        *("x", None, "done", ABANDONED_CALL),
        "y",
    ]
    assert imported.report.left_out == 1


def test_an_unfinished_run_of_a_document_goes_on_as_another_run() -> None:
    imported = read_jsonl(ACCEPTED["document with an unfinished run, gone on with"])
    *_, history, begin, abandoned, response, end = [
        entry.body for entry in imported.entries if entry.branch_id == "main"
    ]
    assert isinstance(history, HistoryImported)
    assert isinstance(begin, RunContinued)
    assert isinstance(abandoned, MessagesAppended)
    assert [message.content for message in abandoned.messages] == [ABANDONED_CALL]
    assert isinstance(response, MessageAppended)
    assert isinstance(end, RunFinished)
    assert begin.run_id == response.run_id == end.run_id != "r5"
    assert end.result.status is RunStatus.COMPLETED


def test_a_checkpoint_during_a_run_ends_the_run() -> None:
    imported = read_jsonl(ACCEPTED["checkpoint during a run"])
    late = [entry.body for entry in imported.entries if entry.branch_id == "late"]
    _, first, end, history, second, lost = late
    assert isinstance(first, RunStarted)
    assert isinstance(end, RunFinished)
    assert end.result.stop_reason is StopReason.SUPERSEDED
    assert isinstance(history, HistoryImported)
    assert isinstance(second, RunStarted)
    assert second.run_id != first.run_id == end.run_id
    assert isinstance(lost, RunFinished)
    assert imported.report.closed_runs == 2
    assert projected(records_of(imported), "late") == ["t"]


def test_a_long_journal_with_many_branches_is_read_whole() -> None:
    file, branch, ended = FileBuilder(), "main", ""
    for number in range(2000):
        if number:
            file.branch(f"b{number}", ended, branch)
            branch = f"b{number}"
        file.add("run_started", 1, branch, run_id=f"r{number}", task="t")
        ended = file.add("run_finished", 2, branch, run_id=f"r{number}", result=result())
    imported = read_jsonl(file.encoded)
    assert (imported.report.branches, imported.report.runs) == (2000, 2000)
    assert len(records_of(imported).project_branch(branch).messages) == 2000
