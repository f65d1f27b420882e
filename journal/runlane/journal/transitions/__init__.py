"""State changes that must not tear: one function for each Lua script, and no other caller."""

from runlane.journal.transitions.abort import abort
from runlane.journal.transitions.append import append
from runlane.journal.transitions.checkout import Checkout, checkout
from runlane.journal.transitions.claim import Claim, ClaimedRun, claim
from runlane.journal.transitions.finish import Finished, finish
from runlane.journal.transitions.hand_back import hand_back
from runlane.journal.transitions.publish import publish
from runlane.journal.transitions.register import register
from runlane.journal.transitions.renew import Renewal, renew
from runlane.journal.transitions.settle import settle
from runlane.journal.transitions.submit import Submitted, submit

__all__ = [
    "Checkout",
    "Claim",
    "ClaimedRun",
    "Finished",
    "Renewal",
    "Submitted",
    "abort",
    "append",
    "checkout",
    "claim",
    "finish",
    "hand_back",
    "publish",
    "register",
    "renew",
    "settle",
    "submit",
]
