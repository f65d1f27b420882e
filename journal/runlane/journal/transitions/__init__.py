"""State changes that must not tear: one function for each Lua script, and no other caller."""

from runlane.journal.transitions.abort import abort
from runlane.journal.transitions.append import Appended, append
from runlane.journal.transitions.archive_claim import ArchiveClaim, archive_claim
from runlane.journal.transitions.archive_release import archive_release
from runlane.journal.transitions.checkout import Checkout, checkout
from runlane.journal.transitions.claim import Claim, ClaimedRun, claim
from runlane.journal.transitions.create_branch import create_branch
from runlane.journal.transitions.delete_rest import delete_rest
from runlane.journal.transitions.delete_runs import delete_runs
from runlane.journal.transitions.delete_session import Deletion, delete_session
from runlane.journal.transitions.drop_dead import drop_dead
from runlane.journal.transitions.drop_import import drop_import
from runlane.journal.transitions.drop_orphans import drop_orphans
from runlane.journal.transitions.finish import Finished, finish
from runlane.journal.transitions.finish_import import ImportedBranch, finish_import
from runlane.journal.transitions.forget_deleted import forget_deleted
from runlane.journal.transitions.hand_back import hand_back
from runlane.journal.transitions.hold import hold
from runlane.journal.transitions.import_records import StagedRecord, import_records
from runlane.journal.transitions.keep_lost import keep_lost
from runlane.journal.transitions.promote import promote
from runlane.journal.transitions.publish import publish
from runlane.journal.transitions.put_blob import put_blob
from runlane.journal.transitions.register import register
from runlane.journal.transitions.release import release
from runlane.journal.transitions.renew import Renewal, renew
from runlane.journal.transitions.settle import settle
from runlane.journal.transitions.steal import steal
from runlane.journal.transitions.steer import steer
from runlane.journal.transitions.submit import Submitted, submit
from runlane.journal.transitions.trim import trim

__all__ = [
    "Appended",
    "ArchiveClaim",
    "Checkout",
    "Claim",
    "ClaimedRun",
    "Deletion",
    "Finished",
    "ImportedBranch",
    "Renewal",
    "StagedRecord",
    "Submitted",
    "abort",
    "append",
    "archive_claim",
    "archive_release",
    "checkout",
    "claim",
    "create_branch",
    "delete_rest",
    "delete_runs",
    "delete_session",
    "drop_dead",
    "drop_import",
    "drop_orphans",
    "finish",
    "finish_import",
    "forget_deleted",
    "hand_back",
    "hold",
    "import_records",
    "keep_lost",
    "promote",
    "publish",
    "put_blob",
    "register",
    "release",
    "renew",
    "settle",
    "steal",
    "steer",
    "submit",
    "trim",
]
