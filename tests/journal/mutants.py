"""Ways to break the scripts that a test of the lanes must notice."""

import hashlib
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from runlane.journal.lua.scripts import Script, load

SCRIPTS: Final = (
    *("abort", "append", "checkout", "claim", "finish", "hand_back", "publish", "register"),
    *("renew", "settle", "submit"),
)


class Mutant(Struct, frozen=True):
    """One change of the text of one script, or of all that include it."""

    says: str
    was: str
    becomes: str
    scripts: tuple[str, ...] = SCRIPTS

    def load(self, name: str) -> Script:
        """Load a script with the change in it."""
        script = load(name)
        if name not in self.scripts or self.was not in script.source:
            return script
        source = script.source.replace(self.was, self.becomes)
        sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
        return replace(script, source=source, sha=sha)

    @property
    def applies(self) -> bool:
        return any(self.load(name) is not load(name) for name in SCRIPTS)


Load = Callable[[str], Script]

MUTANTS: Final = (
    Mutant("any fence will do", "lane.fence == fence and lane.active", "lane.active"),
    Mutant(
        "fences are compared by number",
        "lane.fence == fence and",
        "string.match(lane.fence, '%d*') == string.match(fence, '%d*') and",
    ),
    Mutant(
        "a fence is good for any run of its lane",
        "lane.fence == fence and lane.active == run_id",
        "lane.fence == fence",
    ),
    Mutant("append takes any head", "found ~= ARGV[6]", "false", ("append",)),
    Mutant("finish takes any head", "found ~= ARGV[6]", "false", ("finish",)),
    Mutant("append does not know its request", "run[1] == ARGV[5]", "false", ("append",)),
    Mutant("finish does not know its request", "last[1] == ARGV[5]", "false", ("finish",)),
    Mutant("claim does not know its request", "last[1] == ARGV[2]", "false", ("claim",)),
    Mutant("submit does not know its run", "if queued then return", "if false then return"),
    Mutant("an idempotency key takes any body", "known and digest ~= ARGV[10]", "false"),
    Mutant("a lane stops after a run", "  advance(lane, run.session", "  if false then lane(lane"),
    Mutant(
        "hand-back counts a crash",
        "redis.call('HDEL', lane.name, 'fence')",
        "redis.call('HINCRBY', key('run', run_id), 'crashes_row', 1)\n"
        "redis.call('HDEL', lane.name, 'fence')",
        ("hand_back",),
    ),
    Mutant(
        "hand-back keeps the fence", "redis.call('HDEL', lane.name, 'fence')", "", ("hand_back",)
    ),
    Mutant(
        "a settled run has no end in the journal",
        "add_control_record(run.session, 'run_finished',",
        "type(run.session, 'run_finished',",
    ),
    Mutant(
        "the inbox is a stack", "redis.call('LPOP', key('inbox'", "redis.call('RPOP', key('inbox'"
    ),
    Mutant(
        "follow-ups wait behind the inbox", "'follow_up' and 'next' or 'inbox'", "'' or 'inbox'"
    ),
    Mutant("dependent follow-ups live on", "run.policy == 'discard'", "false"),
    Mutant("all follow-ups are dependent", "run.policy == 'discard'", "true"),
    Mutant("an abort does not win", "run.abort and status ~= 'cancelled'", "false"),
    Mutant("crashes are not counted", "held and 1 or 0", "0"),
    Mutant("everything is progress", "ARGV[7] == '1'", "true", ("append",)),
    Mutant("nothing is progress", "ARGV[7] == '1'", "false", ("append",)),
    Mutant(
        "an exhausted run is tried again",
        "if left <= 0 then",
        "if false then",
    ),
    Mutant(
        "a new holder keeps the old fence",
        "redis.call('HSET', lane.name, 'fence', fence)",
        "",
        ("claim",),
    ),
    Mutant(
        "a claim does not extend the lease",
        "redis.call('ZADD', key('q', queue), now + lease_ms, run_id)",
        "",
        ("claim",),
    ),
    Mutant(
        "a worker holds many runs on their last chance", "last_chance and holds_suspect()", "false"
    ),
    Mutant("a claim takes all there is", "share - #taken)", "-1)"),
    Mutant("the head stays behind", "redis.call('HSET', key('heads', session), branch, head)", ""),
    Mutant("a control record forgets its parent", "parent_hash .. '|@control|'", "'|@control|'"),
    Mutant(
        "a waiting run is settled and still waits",
        "redis.call('LREM', key('inbox', place), 1, run_id)",
        "",
    ),
    Mutant(
        "settle takes runs from their holders",
        "lane.active == run_id and lane.fence ~= ARGV[7]",
        "false",
    ),
    Mutant("a run that never began is continued", "  if run.started then", "  if true then"),
    Mutant(
        "renew revives what is lost",
        "lane and holds(lane, run_id, ARGV[i + 4])",
        "lane",
        ("renew",),
    ),
)
