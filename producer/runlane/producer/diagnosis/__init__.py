"""What a server is, what its configuration promises, and what is wrong with it."""

from runlane.producer.diagnosis.checks import Finding, Status, check
from runlane.producer.diagnosis.examination import examine
from runlane.producer.diagnosis.facts import Facts, ReplicaFacts, SentinelFacts
from runlane.producer.diagnosis.levels import Verdict, judge
from runlane.producer.diagnosis.promises import Promises, promises_of

__all__ = [
    "Facts",
    "Finding",
    "Promises",
    "ReplicaFacts",
    "SentinelFacts",
    "Status",
    "Verdict",
    "check",
    "examine",
    "judge",
    "promises_of",
]
