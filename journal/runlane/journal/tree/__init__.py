"""The tree of a session: branches that go on from any of its records."""

from runlane.journal.tree.acts import SessionRetry, follow, fork, prepare_retry
from runlane.journal.tree.vanishing import unless_gone
from runlane.journal.tree.views import (
    BranchInfo,
    SessionCheckout,
    check_out,
    list_branches,
    read_head,
)

__all__ = [
    "BranchInfo",
    "SessionCheckout",
    "SessionRetry",
    "check_out",
    "follow",
    "fork",
    "list_branches",
    "prepare_retry",
    "read_head",
    "unless_gone",
]
