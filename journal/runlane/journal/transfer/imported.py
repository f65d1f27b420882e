"""What a file of another system comes to, ready to be appended."""

from msgspec import Struct

from runlane.journal.wire.records import AnyBody


class ImportedRecord(Struct, frozen=True):
    """A record to be.

    Attributes:
        branch_id: Its branch.
        parent: The place, among the records of the import, of the one that it goes on from;
            None for the first of a path.
        body: What happened.
    """

    branch_id: str
    parent: int | None
    body: AnyBody


class ImportReport(Struct, frozen=True, kw_only=True):
    """What was found, for people.

    Attributes:
        lines: Records of the file; 1 for a file that is one document.
        branches: Branches, `main` included.
        runs: Runs that began in records of the file.
        closed_runs: Those among them that the file leaves unfinished, and the import closes.
        renamed_runs: Runs whose ids are none here or are there twice, and became others.
        torn: Whether the last line was incomplete, and left out.
        left_out: Parts of messages that a transcript here cannot hold: images, files, results of
            tool calls that nobody made.
        renamed_branches: Names that are none here, and what they became.
    """

    lines: int
    branches: int = 1
    runs: int = 0
    closed_runs: int = 0
    renamed_runs: int = 0
    torn: bool = False
    left_out: int = 0
    renamed_branches: dict[str, str] = {}


class ImportedJournal(Struct, frozen=True, kw_only=True):
    """The records of a session that another system kept.

    Attributes:
        session_id: The session's name there.
        agent_id: The agent that it was bound to; None if to none.
        entries: In an order in which they can be appended: parents come first.
        report: What was found.
    """

    session_id: str
    agent_id: str | None
    entries: tuple[ImportedRecord, ...]
    report: ImportReport
