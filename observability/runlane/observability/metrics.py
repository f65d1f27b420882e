"""Counters of a process, in the default registry of prometheus-client."""

from prometheus_client import Counter, Gauge

RUNS_ACTIVE = Gauge("runlane_runs_active", "Runs that this worker executes now.")
ATTEMPTS_STARTED = Counter(
    "runlane_attempts_started", "Attempts by cause: first, crash or hand_back.", ["cause"]
)
RUNS_ENDED = Counter("runlane_runs_ended", "Runs that ended here.", ["agent", "status"])
LEASES_LOST = Counter("runlane_leases_lost", "Runs that went on elsewhere.")
RECORDS_ARCHIVED = Counter("runlane_records_archived", "Records that went to the archive.")
SESSIONS_EXPIRED = Counter("runlane_sessions_expired", "Sessions deleted since nobody used them.")
