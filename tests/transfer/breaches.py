"""Files that break one rule each, where, and what the refusal says."""

from tests.transfer.breaking import (
    Breach,
    compact,
    end,
    say,
    start,
    with_data,
    with_document,
    with_line,
    with_message,
    with_more,
    with_raw,
)
from tests.transfer.ejagent_files import (
    SUMMARY,
    assistant,
    document,
    result,
    run_of,
    sample,
    tool,
    usage,
    user,
)

REFUSED: dict[str, Breach] = {
    # lines
    "torn first line": ([sample().encoded[0][:-1]], 1, "no complete record"),
    "line that is no JSON": with_raw(2, "malformed", lambda raw: b"nonsense\n"),
    "blank line": with_raw(2, "", lambda raw: b"\n"),
    "line that is an array": with_raw(2, "Expected `object`", lambda raw: b"[" + raw[:-1] + b"]\n"),
    "line that is not UTF-8": with_raw(2, "UTF-8", lambda raw: raw.replace(b'"c1"', b'"\xff"')),
    "line that ends too early": with_raw(2, "", lambda raw: raw[:-3] + b"\n"),
    "carriage return within a line": with_raw(
        2, "carriage return", lambda raw: raw.replace(b",", b",\r", 1)
    ),
    # envelope
    "other schema version": with_line(1, "journal_schema_version", journal_schema_version=2),
    "schema version of true": with_line(1, "journal_schema_version", journal_schema_version=True),
    "schema version as text": with_line(1, "journal_schema_version", journal_schema_version="1"),
    "no schema version": with_line(1, "journal_schema_version", journal_schema_version=...),
    "no record id": with_line(2, "record_id", record_id=...),
    "empty record id": with_line(2, "record_id", record_id=""),
    "record id of a number": with_line(2, "record_id", record_id=2),
    "no revision": with_line(2, "revision", revision=...),
    "revision of true": with_line(1, "revision", revision=True),
    "revision of a float": with_line(2, "revision", revision=2.0),
    "no session id": with_line(2, "session_id", session_id=...),
    "no branch id": with_line(2, "branch_id", branch_id=...),
    "blank branch id": with_line(2, "branch_id", branch_id=" "),
    "no sequence": with_line(2, "sequence", sequence=...),
    "negative sequence": with_line(2, "sequence", sequence=-1),
    "sequence of false": with_line(2, "sequence", sequence=False),
    "no type": with_line(2, "type", type=...),
    "unknown type": with_line(2, "tool_started", type="tool_started"),
    "no data": with_line(2, "data", data=...),
    "data of an array": with_line(2, "object", data=[]),
    "parent id of a number": with_line(2, "parent_id", parent_id=1),
    "empty parent id": with_line(2, "parent_id", parent_id=""),
    "agent id of a number": with_line(2, "agent_id", agent_id=1),
    "blank agent id": with_line(1, "agent_id", agent_id=" "),
    # the session
    "other session": with_line(3, "session_id is 't', not 's'", session_id="t"),
    "session id with a space": with_line(3, "session_id is 's '", session_id="s "),
    "other agent": with_line(3, "agent_id changes", agent_id="b"),
    "no agent any more": with_line(3, "agent_id", agent_id=None),
    "run without an agent": with_line(1, "agent_id", agent_id=None),
    "agent id with a space, later": with_line(3, "agent_id changes", agent_id="a "),
    "checkpoint without an agent": with_line(12, "agent_id changes", agent_id=None),
    "branch of another agent": with_line(8, "agent_id changes", agent_id="b"),
    # the tree
    "record id twice": with_line(3, "is there twice", record_id=f"{2:032x}"),
    "revision gap": with_line(3, "revision 4 follows 2", revision=4),
    "revision again": with_line(3, "revision 2 follows 2", revision=2),
    "unknown parent": with_line(3, "no earlier record", parent_id="f" * 32),
    "own parent": with_line(3, "no earlier record", parent_id=f"{3:032x}"),
    "parent that is not the head": with_line(3, "not the head", parent_id=f"{1:032x}"),
    "second root": with_line(3, "not the head", parent_id=None),
    "first record not on main": with_line(1, "was not created", branch_id="side"),
    "first record with a parent": with_line(1, "no earlier record", parent_id="0" * 32),
    "branch that was not created": with_line(3, "was not created", branch_id="nowhere"),
    "main created": with_line(8, "main is created", branch_id="main"),
    "branch name taken": with_line(14, "exists already", branch_id="side"),
    "base that is not the parent": with_data(8, "not the parent", base_record_id=f"{5:032x}"),
    "base of null with a parent": with_data(8, "base_record_id is null", base_record_id=None),
    "unknown source branch": with_data(8, "no source branch", source_branch_id="x"),
    "empty source branch": with_data(8, "source_branch_id", source_branch_id=""),
    "no source branch": with_data(8, "source_branch_id", source_branch_id=...),
    "source head that is past": with_data(8, "source_head_id", source_head_id=f"{6:032x}"),
    "unknown source head": with_data(8, "source_head_id", source_head_id="x"),
    "no source head": with_data(8, "source_head_id", source_head_id=...),
    "base on another branch": with_more(
        "does not lie", lambda file: file.branch("x", f"{11:032x}", "main")
    ),
    "base of null for a fork": with_more(
        "which only a retry may have", lambda file: file.branch("x", None)
    ),
    "unknown intent": with_data(8, "intent", intent="lost"),
    "no intent": with_data(8, "intent", intent=...),
    "retry of nothing": with_data(13, "retried_run_id", retried_run_id=...),
    "retry of an empty run id": with_data(13, "retried_run_id", retried_run_id=""),
    "fork with a retried run": with_data(8, "retried_run_id", retried_run_id="r1"),
    # runs
    "no run id": with_data(1, "run_id", run_id=...),
    "empty run id": with_data(1, "run_id", run_id=""),
    "run id of a number": with_data(1, "run_id", run_id=1),
    "no task": with_data(1, "task", task=...),
    "task of null": with_data(1, "task", task=None),
    "run at sequence 0": with_line(1, "sequence is 0", sequence=0),
    "continued run at sequence 0": with_line(9, "sequence is 0", sequence=0),
    "run id again": with_more("exists already", start("r1")),
    "run id again, continued": with_data(9, "exists already", run_id="r1"),
    "run id of a document again": with_more("exists already", start("r9", branch="late")),
    "two open runs": with_more("unfinished", start("r3"), start("r4")),
    "continue during a run": with_more(
        "unfinished", start("r3"), lambda file: file.add("run_continued", 1, "side", run_id="r4")
    ),
    "message of an unknown run": with_more("unknown or finished", say("r7", 3)),
    "message of a finished run": with_more("unknown or finished", say("r2", 9)),
    "message of a run of another branch": with_more(
        "unknown or finished", start("r3"), say("r1", 9)
    ),
    "message of a run before a checkpoint": with_more("unknown or finished", say("r1", 99, "late")),
    "message before its predecessor": with_more("goes back", start("r3", 4), say("r3", 3)),
    "steering before its predecessor": with_line(4, "goes back", sequence=4),
    "messages before their predecessor": with_line(3, "goes back", sequence=2),
    "message at sequence 0": with_line(2, "goes back", sequence=0),
    "no message": with_data(2, "message", message=...),
    "message of text": with_data(2, "message", message="x"),
    "messages of an object": with_data(3, "messages", messages={}),
    "messages with a text": with_data(3, "messages", messages=["x"]),
    "no messages": with_data(3, "messages", messages=...),
    "end of an unknown run": with_more("unknown or finished", end("r7", 9)),
    "end of a finished run": with_more("unknown or finished", end("r2", 9)),
    "end at the sequence of the last message": with_line(6, "does not come after", sequence=10),
    "end before the beginning": with_more("does not come after", start("r3", 5), end("r3", 4)),
    "steering without an id": with_data(4, "input_id", input_id=...),
    "steering of null": with_data(4, "content", content=None),
    "steering for turn 0": with_data(4, "target_turn", target_turn=0),
    "steering for turn true": with_data(4, "target_turn", target_turn=True),
    "steering of an unknown run": with_data(4, "unknown or finished", run_id="r7"),
    # results
    "no result": with_data(6, "result", result=...),
    "result of null": with_data(6, "result", result=None),
    "unknown status": with_data(6, "status", result=result(status="done")),
    "unknown stop reason": with_data(6, "stop_reason", result=result(stop_reason="worker_lost")),
    "turns of true": with_data(6, "turns", result=result(turns=True)),
    "turns of a float": with_data(6, "turns", result=result(turns=1.0)),
    "turns of null": with_data(6, "turns", result=result(turns=None)),
    "output of a number": with_data(6, "output", result=result(output=1)),
    "error of an object": with_data(6, "error", result=result(error={})),
    "usage of null": with_data(6, "usage", result=result(usage=None)),
    "tokens of true": with_data(6, "input_tokens", result=result(usage=usage(input_tokens=True))),
    "negative tokens": with_data(
        6, "output_tokens", result=result(usage=usage(output_tokens=-5, total_tokens=5))
    ),
    "tokens as text": with_data(6, "total_tokens", result=result(usage=usage(total_tokens="15"))),
    "wrong total": with_data(6, "total_tokens is not", result=result(usage=usage(total_tokens=16))),
    "more cached than read": with_data(
        6, "more than all", result=result(usage=usage(cache_read_tokens=11))
    ),
    "more written to the cache than read": with_data(
        6, "more than all", result=result(usage=usage(cache_write_tokens=11))
    ),
    "more reasoning than output": with_data(
        6, "more than all", result=result(usage=usage(reasoning_tokens=6))
    ),
    "more reports than requests": with_data(
        6, "more than request_count", result=result(usage=usage(reported_request_count=2))
    ),
    "no request count": with_data(
        6,
        "request_count",
        result=result(
            usage={key: value for key, value in usage().items() if key != "request_count"}
        ),
    ),
    # compactions
    "compaction twice": with_more("exists already", compact("op2", "side"), compact("op2", "side")),
    "compaction of a document again": with_more("exists already", compact("op9", "late")),
    "compaction without an id": with_data(7, "operation_id", operation_id=...),
    "compaction of an empty id": with_data(7, "operation_id", operation_id=""),
    "compaction to nothing": with_data(7, "messages", messages=[]),
    "compaction to a text": with_data(7, "messages", messages=["x"]),
    "compaction without a summary": with_data(7, "summary", summary=None),
    "compaction at sequence 0": with_line(7, "sequence is 0", sequence=0),
    "blank summary": with_data(7, "content", summary=SUMMARY | {"content": " "}),
    "blank summary source": with_data(7, "source", summary=SUMMARY | {"source": ""}),
    "summary that begins before 0": with_data(
        7, "history_start_index", summary=SUMMARY | {"history_start_index": -1}
    ),
    "summary that keeps all": with_data(
        7, "is not after", summary=SUMMARY | {"first_kept_index": 1}
    ),
    "summary of nothing": with_data(
        7, "summarized_message_count", summary=SUMMARY | {"summarized_message_count": 0}
    ),
    "summary of true messages": with_data(
        7, "summarized_message_count", summary=SUMMARY | {"summarized_message_count": True}
    ),
    "summary of negative tokens": with_data(
        7, "tokens_before", summary=SUMMARY | {"tokens_before": -1}
    ),
    "summary without tokens": with_data(
        7,
        "tokens_before",
        summary={key: value for key, value in SUMMARY.items() if key != "tokens_before"},
    ),
    # documents
    "no document": with_data(12, "document", document=...),
    "document of text": with_data(12, "object", document="x"),
    "document of another version": with_data(
        12, "schema_version", document=document() | {"schema_version": 2}
    ),
    "document without a session": with_data(12, "session", document={"schema_version": 1}),
    "document of another session": with_document("another session", session_id="t"),
    "document of another agent": with_document("another agent", agent_id="b"),
    "document of no agent": with_document("another agent", agent_id=None),
    "document without entries": with_document("entries", entries=...),
    "document without runs": with_document("runs", runs=...),
    "document without compactions": with_document("compactions", compactions=...),
    "entry of an empty run": with_document(
        "run_id", entries=[{"run_id": "", "sequence": 1, "message": user("x")}]
    ),
    "entry at sequence 0": with_document(
        "sequence", entries=[{"run_id": "r9", "sequence": 0, "message": user("x")}]
    ),
    "entry without a message": with_document("message", entries=[{"run_id": "r9", "sequence": 1}]),
    "task run without a task": with_document("a run has a task", runs=[run_of("r9", task=None)]),
    "continued run with a task": with_document(
        "a run has a task", runs=[run_of("r9", intent="continue")]
    ),
    "unknown run intent": with_document("intent", runs=[run_of("r9", intent="retry")]),
    "run with a result and no end": with_document(
        "come together", runs=[run_of("r9", finish_sequence=None)]
    ),
    "run with an end and no result": with_document(
        "come together", runs=[run_of("r9", result=None)]
    ),
    "run that ends where it begins": with_document(
        "is not after", runs=[run_of("r9", finish_sequence=1)]
    ),
    "run that begins at 0": with_document("start_sequence", runs=[run_of("r9", start_sequence=0)]),
    "compaction that covers too much": with_document(
        "covers more",
        compactions=[
            {
                "operation_id": "op9",
                "sequence": 3,
                "summary": SUMMARY,
                "messages": [user("x")],
                "covered_entry_count": 2,
            }
        ],
    ),
    "compaction that covers less than nothing": with_document(
        "covered_entry_count",
        compactions=[
            {
                "operation_id": "op9",
                "sequence": 3,
                "summary": SUMMARY,
                "messages": [user("x")],
                "covered_entry_count": -1,
            }
        ],
    ),
    "fork after an unfinished document, then a run": with_more(
        "unfinished",
        lambda file: file.add(
            "checkpoint",
            document=document(runs=[run_of("r5", finish_sequence=None, result=None)]),
        ),
        start("r6", branch="main"),
    ),
}
"""What EJAgent refuses, and we do."""


OURS: dict[str, Breach] = {
    "NaN": with_raw(2, "malformed", lambda raw: raw.replace(b'"content":null', b'"content":NaN')),
    "lone surrogate": with_raw(4, "", lambda raw: raw.replace(b"steer", b"\\ud800", 1)),
    "lone surrogate in a key that nobody reads": with_raw(
        4, "", lambda raw: raw.replace(b'{"agent', b'{"a":"\\ud800","agent', 1)
    ),
    "content of a number": with_message("content", {"role": "assistant", "content": 1}),
    "content of an image": with_message(
        "content", {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
    ),
    "unknown role": with_message("role", {"role": "function", "content": "x"}),
    "no role": with_message("role", {"content": "x"}),
    "tool calls of text": with_message("tool_calls", assistant("x") | {"tool_calls": "x"}),
    "tool call without a name": with_message(
        "name", assistant("x") | {"tool_calls": [{"id": "c", "function": {}}]}
    ),
    "integer that no record holds": with_data(6, "turns", result=result(turns=2**63)),
    "branch from within a run": with_more(
        "unfinished at the base",
        start("r3"),
        say("r3", 2),
        lambda file: file.branch("x", f"{15:032x}", "side"),
    ),
    "another agent on another root": with_line(13, "agent_id changes", agent_id="b"),
    "run twice in a document": with_document("twice", runs=[run_of("r9"), run_of("r9")]),
    "two unfinished runs in a document": with_document(
        "more than one run",
        runs=[
            run_of("r9", finish_sequence=None, result=None),
            run_of("r8", finish_sequence=None, result=None),
        ],
    ),
    "tool message of an empty document entry": with_document(
        "role", entries=[{"run_id": "r9", "sequence": 1, "message": {}}]
    ),
}
"""What we refuse although EJAgent reads it: what is not JSON, or no journal here can hold."""

ACCEPTED: dict[str, list[bytes]] = {
    "sample": sample().encoded,
    "keys that nobody knows": with_line(3, "", surplus=1)[0],
    "data that nobody knows": with_data(3, "", surplus=1)[0],
    "no parent id on the first line": with_line(1, "", parent_id=...)[0],
    "empty list of messages of an unknown run": with_more(
        "", lambda file: file.add("messages_appended", 0, "side", run_id="r7", messages=[])
    )[0],
    "torn last line": [*sample().encoded, b'{"journal'],
    "empty torn tail": [*sample().encoded, b"   "],
    "lines that end as on Windows": [line[:-1] + b"\r\n" for line in sample().encoded],
    "document without intents": with_document(
        "",
        runs=[{key: value for key, value in run_of("r9").items() if key != "intent"}],
    )[0],
    "agent id with spaces at first": with_line(1, "", agent_id=" a ")[0],
    "run id again behind a checkpoint": with_more("", start("r1", branch="late"))[0],
    "run id again on a root branch": with_more("", start("r1", branch="again"))[0],
    "document with an unfinished run, gone on with": with_more(
        "",
        lambda file: file.add(
            "checkpoint",
            document=document(
                entries=[
                    {"run_id": "r5", "sequence": 2, "message": assistant(None, "c5", "c6")},
                    {"run_id": "r5", "sequence": 3, "message": tool("c5")},
                ],
                runs=[run_of("r5", finish_sequence=None, result=None)],
            ),
        ),
        say("r5", 3, "main"),
        end("r5", 4, "main"),
    )[0],
    "checkpoint during a run": with_more(
        "",
        start("r3", branch="late"),
        lambda file: file.add("checkpoint", branch="late", document=document()),
        start("r3", branch="late"),
    )[0],
}
"""What EJAgent reads, and so do we, though it looks odd."""
