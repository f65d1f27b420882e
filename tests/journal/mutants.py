"""Ways to break the scripts that a test of the lanes must notice."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from runlane.journal import lua
from runlane.journal.lua.scripts import Script, load

SCRIPTS: Final = tuple(sorted(path.stem for path in Path(lua.__file__).parent.glob("*.lua")))


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
        "add_own_record(run.session, chain, 'run_finished',",
        "type(run.session, chain, 'run_finished',",
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
    Mutant("a control record forgets its parent", "parent_hash .. '|' .. branch", "'|' .. branch"),
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
    Mutant("a run that never began is continued", "  if has_begun(run_id) then", "  if true then"),
    Mutant(
        "renew revives what is lost",
        "lane and holds(lane, run_id, ARGV[i + 4])",
        "lane",
        ("renew",),
    ),
    Mutant("a begun run ends beside its branch", "has_begun(run_id) and run.branch or", ""),
    Mutant(
        "a run that never began ends on its branch",
        "has_begun(run_id) and run.branch or '@control'",
        "run.branch",
    ),
    Mutant(
        "nobody notes where a run began",
        "redis.call('HSET', key('run', run_id), 'begin', begin)",
        "",
    ),
    Mutant("an ended run is known for ever", "redis.call('PEXPIRE', name, keep_ms)", ""),
    Mutant("an ended run keeps what it was", ", 'cause', 'crashes_row', 'policy', 'inputs')", ")"),
    Mutant("the head is taken for the end", "ids.run_finished, ARGV[10]", "head, ARGV[10]"),
    Mutant("subscribers hear what is stored", "and heard_end or data", "and data or data"),
    Mutant("a named blob is not counted", "'refs', 1)", "'refs', 0)"),
    Mutant(
        "a record names what is not there",
        "redis.call('EXISTS', blob_key(session, digest)) == 0",
        "false",
    ),
    Mutant(
        "a checkpoint is not noted",
        "redis.call('HSET', lane.name, 'checkpoint', string",
        "type(lane.name, string",
    ),
    Mutant(
        "a checkout does not begin at the checkpoint",
        "redis.call('HGET', lane.name, 'checkpoint') or '-'",
        "'-'",
        ("checkout",),
    ),
    Mutant("submit takes any branch", "branch ~= 'main' and", "false and", ("submit",)),
    Mutant("a closed session takes work", "if state and state ~= ''", "if false"),
    Mutant(
        "create_branch does not know its request", "last[1] == ARGV[7]", "false", ("create_branch",)
    ),
    Mutant("promote does not know its request", "last[1] == ARGV[7]", "false", ("promote",)),
    Mutant(
        "a branch is created twice", "if found or branch == 'main'", "if false", ("create_branch",)
    ),
    Mutant("a branch begins at nothing", "now_ms(), base)", "now_ms(), '')", ("create_branch",)),
    Mutant("main goes on from nothing", "now_ms(), base)", "now_ms(), '')", ("promote",)),
    Mutant("a branch has no last run", "if last_run ~= ''", "if false", ("create_branch",)),
    Mutant("a jump is not noted", "redis.call('HSET', key('jumps', session), head, jump)", ""),
    Mutant("promote takes any head", "found ~= ARGV[2]", "false", ("promote",)),
    Mutant("promote does not ask who is at work", "lane.active ~= ''", "false", ("promote",)),
    Mutant("main keeps its checkpoint", "'checkpoint', 'last_run'", "'last_run'", ("promote",)),
    Mutant(
        "main keeps its last run",
        "'checkpoint', 'last_run', 'last_stop'",
        "'checkpoint'",
        ("promote",),
    ),
    Mutant(
        "a stolen lane keeps its fence", "redis.call('HDEL', lane.name, 'fence')", "", ("steal",)
    ),
    Mutant(
        "steal does not know its request",
        "redis.call('HGET', run_key, 'stolen') == ARGV[2]",
        "false",
        ("steal",),
    ),
    Mutant(
        "a lane is held out of turn",
        "if lane.active ~= run_id then\n  return { 'WAITING'",
        "if false then\n  return { 'WAITING'",
        ("hold",),
    ),
    Mutant("a silent holder keeps its lane", "drop_silent_holds(now)\nlocal due", "local due"),
    Mutant(
        "a lane does not go on after a hold", "advance(lane, run.session, run.branch, 'c", "type('"
    ),
    Mutant(
        "steer does not know its request", "if run_id then return { 'A", "if nil then return { 'A"
    ),
    Mutant("a hold is steered", "not run or run.queue == HOLDS", "not run", ("steer",)),
    Mutant("a closing run is steered", "if run.abort then", "if false then", ("steer",)),
    Mutant("there is room for everything", "size >= tonumber(ARGV[5])", "false", ("steer",)),
    Mutant(
        "an attempt is told what was said to another one", "run_id, lane.fence, i", "run_id, '', i"
    ),
    Mutant("what was heard still waits", "run[5] and ARGV[8] ~= ''", "false", ("append",)),
    Mutant("what was heard is not forgotten", "'HDEL', key('run', run_id), 'inputs')", "'TIME')"),
    Mutant("one input stands for all", "' ' .. id .. ' '", "string.sub(id, 1, 0)"),
    Mutant("an id stands for what it is part of", "' ' .. id .. ' '", "id"),
    Mutant(
        "a run ends without hearing", "if inputs then return", "if false then return", ("finish",)
    ),
    Mutant(
        "an abort waits for what is to be heard",
        "run.abort and status",
        "run.abort and not unsettled_inputs(run_id, run.inputs, ARGV[13]) and status",
    ),
    Mutant("nothing tells what came too late", "if not run.inputs", "if true", ("settle", "abort")),
    Mutant(
        "what came too late waits for ever",
        "DEL', key('part', run_id), key('steer'",
        "DEL', key('part'",
    ),
    Mutant("a checkout brings nothing", "unsettled_inputs(run_id, run[3], '')", "false"),
    Mutant("what was deleted is kept", "deleted >= tonumber(ARGV[7])", "false", ("keep_lost",)),
    Mutant(
        "keep_lost does not know its request",
        "last[1] == ARGV[4]",
        "false",
        ("keep_lost",),
    ),
)
