"""A session in from a file of EJAgent or of tada-core."""

import asyncio
import codecs
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, Literal, get_args

from msgspec.structs import replace

from runlane.journal.errors import InvalidInputError, JournalFormatError, ServerError
from runlane.journal.ids import new_request_id
from runlane.journal.import_plan import ImportPlan, PlannedBranch, plan_import
from runlane.journal.partition import Partition
from runlane.journal.transfer.imported import ImportedJournal, ImportReport
from runlane.journal.transfer.jsonl_reader import read_jsonl
from runlane.journal.transfer.tada import read_tada
from runlane.journal.transitions import (
    ImportedBranch,
    StagedRecord,
    drop_import,
    finish_import,
    import_records,
)
from runlane.journal.wire.tree import Jump
from runlane.producer.files import Place, Progress, lines_of, opened

PAGE_RECORDS: Final = 200
PAGE_BYTES: Final = 512 * 1024
DOCUMENT_BYTES_MAX: Final = 32 * 1024 * 1024

GIVE_UP_S: Final = 5.0
"""How long an import is tried to be given up; after that the server forgets it by itself."""

FileFormat = Literal["ejagent", "tada"]
"""EJAgent Core 0.6 and SimAgentPlg 0.5, whose journals are JSON lines; or tada-core's JSON."""


async def import_session(
    partition: Partition,
    session_id: str,
    source: Place,
    *,
    file_format: FileFormat,
    agent: str | None,
    progress: Progress | None,
) -> ImportReport:
    """Make a session of a file; nobody sees anything of it before it is complete.

    Raises:
        JournalFormatError: The file breaks its format; nothing was stored.
        InvalidInputError: The format is unknown; nothing was read.
        SessionExistsError: There is such a session, or somebody imports one.
        ImportLostError: What was sent is gone: too long a pause, a delete or a failover.
        ServerUnavailableError: The server is away.
        OSError: The file cannot be read.
    """
    if file_format not in get_args(FileFormat):
        known = ", ".join(get_args(FileFormat))
        raise InvalidInputError(f"the format {file_format!r} is none of: {known}")
    journal, plan = await asyncio.to_thread(_read, source, file_format, session_id)
    agent = agent or await _served(partition, journal.agent_id)
    token = new_request_id()
    try:
        await _store(partition, session_id, token, plan, agent=agent, progress=progress)
    except ServerError:
        raise  # nothing can be said to it: it forgets the import by itself
    except BaseException:
        await asyncio.shield(asyncio.create_task(_give_up(partition, session_id, token)))
        raise
    return journal.report


async def _store(
    partition: Partition,
    session_id: str,
    token: str,
    plan: ImportPlan,
    *,
    agent: str | None,
    progress: Progress | None,
) -> None:
    ids: list[str] = []
    for page in _pages(plan):
        records = [_placed(record, ids) for record in page]
        head = ids[-1] if ids else ""
        ids += await import_records(partition, session_id, token, records, head=head)
        if progress is not None:
            progress(len(ids), len(plan.records))
    branches = [_branch(branch, plan, ids) for branch in plan.branches]
    await finish_import(partition, session_id, token, branches, head=ids[-1], agent=agent)


async def _give_up(partition: Partition, session_id: str, token: str) -> None:
    with suppress(ServerError):
        await drop_import(partition, session_id, token, retry_s=GIVE_UP_S)


def _read(
    source: Place, file_format: FileFormat, session_id: str
) -> tuple[ImportedJournal, ImportPlan]:
    with opened(source) as file:
        if file_format == "ejagent":
            journal = read_jsonl(lines_of(file))
        else:
            data = file.read(DOCUMENT_BYTES_MAX + 1)
            if len(data) > DOCUMENT_BYTES_MAX:
                raise JournalFormatError(f"it has more than {DOCUMENT_BYTES_MAX} bytes")
            journal = read_tada(data.removeprefix(codecs.BOM_UTF8), session_id=session_id)
    if not journal.entries:
        raise JournalFormatError("nothing has happened in its session")
    return journal, plan_import(journal.entries)


def _pages(plan: ImportPlan) -> Iterator[list[StagedRecord]]:
    """Yield the records in pages that do not hold the server up."""
    page: list[StagedRecord] = []
    size = 0
    for record in plan.records:
        if page and (len(page) == PAGE_RECORDS or size + len(record.data) > PAGE_BYTES):
            yield page
            page, size = [], 0
        page.append(record)
        size += len(record.data)
    yield page


def _placed(record: StagedRecord, ids: list[str]) -> StagedRecord:
    """Return a record of a page, its parent named by its id or by its place in the page."""
    parent = record.parent
    if not isinstance(parent, int):
        return record
    return replace(record, parent=ids[parent] if parent < len(ids) else parent - len(ids))


def _branch(branch: PlannedBranch, plan: ImportPlan, ids: list[str]) -> ImportedBranch:
    created, jump = None, None
    if branch.created is not None and branch.created_body is not None:
        created, body = ids[branch.created], branch.created_body
        base = plan.records[branch.created].parent
        jump = Jump(
            branch_id=branch.branch_id,
            base_id=ids[base] if isinstance(base, int) else "",
            base_branch_id=plan.records[base].branch_id if isinstance(base, int) else "",
            source_branch_id=body.source_branch_id,
            intent=body.intent,
            retried_run_id=body.retried_run_id,
        )
    return ImportedBranch(
        branch_id=branch.branch_id,
        head=ids[branch.head],
        last_run=branch.last_run,
        checkpoint_id=None if branch.checkpoint is None else ids[branch.checkpoint],
        created_id=created,
        jump=jump,
    )


async def _served(partition: Partition, agent: str | None) -> str | None:
    """Return the agent of a file if workers here know it; nobody could run another one."""
    if agent is None or not await partition.call("HEXISTS", partition.keys.agents(), agent):
        return None
    return agent
