"""The scripts that are tested here."""

from typing import Final

SCRIPTS: Final = frozenset(
    {
        *("archive_claim", "archive_release", "trim"),
        *("delete_session", "delete_runs", "delete_rest", "forget_deleted", "drop_dead"),
    }
)
