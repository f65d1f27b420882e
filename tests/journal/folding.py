"""What a journal says, found in another way: from all records, one parent after the other."""

from collections.abc import Sequence

from runlane.journal.projection import Projection
from runlane.journal.wire.records import Record

WHOLE = ("checkpoint", "history_imported")


def chain(records: Sequence[Record], record_id: str, *, whole: bool = False) -> list[Record]:
    """Return what leads to a record from what stands for the rest; from the root if `whole`."""
    by_id = {record.record_id: record for record in records}
    found: list[Record] = []
    while record_id:
        found.append(by_id[record_id])
        record_id = found[-1].parent_id
        if found[-1].kind in WHOLE and not whole:
            break
    return found[::-1]


def gist(projection: Projection) -> tuple[object, ...]:
    """Return what a checkpoint must keep, and what is left to do."""
    run = projection.open_run
    open_run: tuple[object, ...] = ()
    if run is not None:
        open_run = (
            *(run.run_id, run.base_id, run.turn, run.usage, run.calls_without_result()),
            *(run.task, run.tool_calls, run.without_tools, run.repeated, run.counters),
            *(run.first_message, run.heard),
        )
    return projection.messages, projection.last_run, projection.spent, projection.foreign, open_run
