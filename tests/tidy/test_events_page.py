"""The page about events names each kind, what it carries, and what other systems call it."""

import re
from typing import Final

import pytest
from tests.tidy.repository import ROOT

from runlane.journal.wire.events import KIND_OF_RECORD, EventKind
from runlane.journal.wire.records import KINDS

TEXT: Final = (ROOT / "docs/events.md").read_text("utf-8")
ROW: Final = re.compile(r"^\| `(\w+)` \| (.+) \| (.*) ?\| (committed|live) \|$", re.MULTILINE)
ROWS: Final = {kind: (payload, kept) for kind, _, payload, kept in ROW.findall(TEXT)}

PLACE: Final = {"run_id", "branch_id", "attempt", "turn"}
"""What the event itself says."""

WITHOUT_PAYLOAD: Final = {"checkpoint", "history_imported"}

OTHERS: Final = {
    "From EJAgent": {
        *("AgentEvent", "AgentStarted", "AgentContinued", "TurnStarted", "TurnCompleted"),
        *("SteeringApplied", "SteeringDiscarded", "MessageCompleted", "AssistantTextDelta"),
        *("AssistantThinkingDelta", "ToolStarted", "ToolProgressed", "ToolCompleted"),
        *("ContextPressureEvaluated", "CompactionStarted", "CompactionCompleted"),
        *("CompactionFailed", "AgentFinished"),
    },
    "From tada-core": {
        *("turn_start", "turn_end", "text_start", "text_delta", "text_end", "thinking_start"),
        *("thinking_delta", "thinking_end", "tool_use", "tool_input_delta", "tool_result"),
        *("tool_progress", "usage", "message_stop", "permission", "hook", "compaction", "error"),
        *("unsupported", "loop_exit", "steering"),
    },
}
"""What they call their events."""


def fields_in(payload: str) -> set[str]:
    """Return the fields that a cell names; what stands in brackets explains one."""
    return set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", payload)))


def test_each_kind_has_its_row_and_is_kept_or_not_as_that_says() -> None:
    committed = set(KIND_OF_RECORD.values())
    assert {kind: kept for kind, (_, kept) in ROWS.items()} == {
        kind.value: "committed" if kind in committed else "live" for kind in EventKind
    }


@pytest.mark.parametrize("record", KINDS)
def test_the_row_of_a_committed_kind_names_the_fields_of_its_record(record: str) -> None:
    kind = KIND_OF_RECORD[record]
    fields: set[str] = set()
    if kind not in WITHOUT_PAYLOAD:
        fields |= {*KINDS[record].__struct_fields__} - PLACE
    if kind is EventKind.SUPERSEDED:
        fields.add("superseded_attempt")
    assert fields_in(ROWS[kind][0]) == fields


@pytest.mark.parametrize("title", OTHERS)
def test_each_event_of_another_system_has_a_counterpart(title: str) -> None:
    section = TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \| .+ \|$", section, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.partition(":")[0])}
    assert named == OTHERS[title]
