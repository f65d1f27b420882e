"""Where things lie in Redis: one function per key, with its type and meaning."""

from typing import Final

from msgspec import Struct

LANE_SEPARATOR: Final = "/"
"""Between session and branch; no id contains it."""


class Keys(Struct, frozen=True):
    """Names of all keys of one partition.

    Attributes:
        root: `<prefix>:{p0}`: first part of every key, and the slot of all of them.
    """

    root: str

    @classmethod
    def of(cls, prefix: str) -> "Keys":
        """Return the keys of the deployment with this prefix."""
        return cls(f"{prefix}:{{p0}}")

    def meta(self) -> str:
        """HASH: what the deployment was made with (partitions, schema)."""
        return f"{self.root}:meta"

    def agents(self) -> str:
        """HASH agent → version that registered last."""
        return f"{self.root}:agents"

    def workers(self) -> str:
        """ZSET worker → until when it is live, in server ms."""
        return f"{self.root}:workers"

    def worker(self, worker_id: str) -> str:
        """HASH: what is known of a worker, and its last claim."""
        return f"{self.root}:w:{worker_id}"

    def queues(self) -> str:
        """SET of all queue names."""
        return f"{self.root}:queues"

    def queue(self, queue: str) -> str:
        """ZSET run id → when it is due, or when its lease ends, in server ms."""
        return f"{self.root}:q:{queue}"

    def wake(self, queue: str) -> str:
        """LIST of tokens that wake idle workers: hints, never state."""
        return f"{self.root}:wake:{queue}"

    def run(self, run_id: str) -> str:
        """HASH: the truth about a run; once it has ended, a stub with an expiry."""
        return f"{self.root}:run:{run_id}"

    def partial(self, run_id: str) -> str:
        """STRING `<attempt>:<turn> <text>`: what the model has said in the current turn."""
        return f"{self.root}:part:{run_id}"

    def steering(self, run_id: str) -> str:
        """LIST of `<input id> <content>`: what was said to a run and is not journaled yet."""
        return f"{self.root}:steer:{run_id}"

    def input(self, input_id: str) -> str:
        """STRING `<run id> <inputs that waited>` of an accepted input, with an expiry."""
        return f"{self.root}:input:{input_id}"

    def sessions(self) -> str:
        """ZSET session → last submit, in server ms."""
        return f"{self.root}:sessions"

    def barrier(self) -> str:
        """CHANNEL that nobody hears: what makes a connection wait for its replicas."""
        return f"{self.root}:barrier"

    def archive(self) -> str:
        """ZSET session → when its journal is to be moved to the archive, in server ms."""
        return f"{self.root}:archive"

    def deleted(self) -> str:
        """HASH deleted session → its last revision: one of the same name goes on from there."""
        return f"{self.root}:deleted"

    def deletions(self) -> str:
        """ZSET session → when its deletion is to be resumed or, once done, forgotten."""
        return f"{self.root}:deletions"

    def upkeep(self) -> str:
        """STRING: the worker that looks for what has had its time, for a moment."""
        return f"{self.root}:upkeep"

    def session(self, session_id: str) -> str:
        """HASH: agent, last revision, what is archived."""
        return f"{self.root}:s:{session_id}"

    def heads(self, session_id: str) -> str:
        """HASH branch → record id of its last record."""
        return f"{self.root}:heads:{session_id}"

    def jumps(self, session_id: str) -> str:
        """HASH record id of a branch_created or branch_promoted → where the branch goes on from."""
        return f"{self.root}:jumps:{session_id}"

    def blob(self, session_id: str, digest: str) -> str:
        """HASH: bytes that are too large for a record, and how many records name them."""
        return f"{self.root}:blob:{session_id}{LANE_SEPARATOR}{digest}"

    def upload(self, session_id: str, upload: str) -> str:
        """HASH of the pieces of a blob that is not whole yet, with an expiry."""
        return f"{self.root}:upload:{session_id}{LANE_SEPARATOR}{upload}"

    def blobs(self, session_id: str) -> str:
        """SET of the digests of all blobs of a session."""
        return f"{self.root}:blobs:{session_id}"

    def orphans(self) -> str:
        """ZSET `<session>/<digest>` of blobs that no record names → since when, in server ms."""
        return f"{self.root}:orphans"

    def log(self, session_id: str) -> str:
        """STREAM of records; the entry id is `<revision>-<inc>`."""
        return f"{self.root}:log:{session_id}"

    def staged(self, session_id: str) -> str:
        """STREAM of records that are being imported: it becomes the log; has an expiry."""
        return f"{self.root}:staged:{session_id}"

    def lane(self, session_id: str, branch_id: str) -> str:
        """HASH: active run, fence, last run of a lane."""
        return f"{self.root}:lane:{session_id}{LANE_SEPARATOR}{branch_id}"

    def inbox(self, session_id: str, branch_id: str) -> str:
        """LIST of run ids that wait behind the active one."""
        return f"{self.root}:inbox:{session_id}{LANE_SEPARATOR}{branch_id}"

    def follow_ups(self, session_id: str, branch_id: str) -> str:
        """LIST of run ids that come before the inbox."""
        return f"{self.root}:next:{session_id}{LANE_SEPARATOR}{branch_id}"

    def idempotency(self, session_id: str, key_hash: str) -> str:
        """STRING `<run id> <body digest>`, with an expiry."""
        return f"{self.root}:idem:{session_id}{LANE_SEPARATOR}{key_hash}"

    def dead(self) -> str:
        """ZSET of dead letters by time, in server ms."""
        return f"{self.root}:dead"

    def dead_letter(self, member: str) -> str:
        """HASH: reason, queue, time and payload of one dead letter."""
        return f"{self.root}:dead:{member}"

    def events(self, session_id: str) -> str:
        """CHANNEL of a session's live events."""
        return f"{self.root}:ev:{session_id}"

    def control(self, worker_id: str) -> str:
        """CHANNEL on which a worker is told about its runs."""
        return f"{self.root}:ctl:{worker_id}"
