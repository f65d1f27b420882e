"""A worker dies at a named point; another one finishes its run. Each death is a case.

All of them happen side by side in one deployment: each doomed worker serves an agent of its own,
and one rescuer, started when all are dead, serves them all.
"""

import asyncio
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

import pytest
from tests.e2e.harness import Fleet, WorkerProcess
from tests.e2e.observing import Heard, Story, check_calls, check_rest, hearing
from tests.e2e.waiting import DEADLINE_S

from runlane.journal.kill_points import KILL_POINTS
from runlane.journal.server import Server
from runlane.journal.wire.records import AttemptCause, AttemptStarted, MessageAppended, ToolOutcome
from runlane.journal.wire.results import RunUsage
from runlane.journal.wire.tree import Checkpoint
from runlane.producer import (
    AgentRunResult,
    Client,
    EventKind,
    ResultTimeoutError,
    RunInfo,
    RunStatus,
    Settings,
    StopReason,
)

RECITE: Final = '[[tools recite {"size": 3000000} ; pay]] [[say done]]'
LONG: Final = f"[[tools {' ; '.join(100 * ['look'])}]] [[tool pay]] [[say done]]"
PAY_TWICE: Final = '[[tools pay {"amount": 1} ; pay {"amount": 2}]] [[say done]]'
EXTRA: Final = {
    "read_only": ("after_tool_ran", "[[tools look ; look]] [[say done]]"),
    "idempotent": ("after_tool_ran", "[[tools stamp ; stamp]] [[say done]]"),
    "reconcile": ("after_tool_ran", "[[tools charge ; pay]] [[say done]]"),
    "reconcile_unknown": ("after_message_appended", "[[tool charge]] [[say done]]"),
    "strict": ("after_tool_ran", "[[tools pay ; look]] [[say done]]"),
}
"""Further cases: agent → where its worker dies, and doing what."""

CASES: Final = (*KILL_POINTS, *EXTRA)


@dataclass
class Death:
    """One worker that dies at one point, and what became of its run."""

    agent: str
    kill_at: str
    task: str
    run_id: str = ""
    returncode: int | None = None
    result: AgentRunResult | None = None
    info: RunInfo | None = None
    story: Story = field(default_factory=lambda: Story("", []))
    heard: Heard = field(default_factory=Heard)

    @property
    def outcomes(self) -> list[ToolOutcome]:
        return [body.outcome for _, body in sorted(self.story.results(self.run_id).items())]

    async def happen(
        self, fleet: Fleet, client: Client, worker: WorkerProcess, dead: asyncio.Event
    ) -> None:
        session = client.session(f"s-{self.agent}", agent=self.agent)
        async with hearing(fleet, session) as self.heard:
            handle = await session.run(self.task)
            self.run_id = handle.run_id
            try:
                self.returncode = await worker.ended()
            except AssertionError:  # it never got there: its case will say so
                worker.kill()
            dead.set()
            with suppress(ResultTimeoutError):
                self.result = await handle.result(DEADLINE_S)
                await self.heard.until_ended(handle.run_id)
        self.info = await handle.status()
        self.story = await Story.read(client, session.session_id)


class Deaths:
    """Every case, carried out."""

    def __init__(self, fleet: Fleet) -> None:
        cases = {point: (point, PAY_TWICE) for point in KILL_POINTS} | EXTRA
        cases["after_content_kept"] = ("after_content_kept", RECITE)
        cases["after_checkpoint"] = ("after_checkpoint", LONG)
        self.fleet = fleet
        self.of = {agent: Death(agent, point, task) for agent, (point, task) in cases.items()}

    async def happen(self) -> None:
        settings = Settings(redis_url=self.fleet.url, prefix=self.fleet.prefix)
        async with await Client.connect(settings=settings) as client:
            deaths = [*self.of.values()]
            doomed = [self.fleet.launch(death.agent, kill_at=death.kill_at) for death in deaths]
            await self.fleet.registered(*doomed)
            dead = [asyncio.Event() for _ in doomed]
            things = [
                asyncio.create_task(death.happen(self.fleet, client, worker, event))
                for death, worker, event in zip(deaths, doomed, dead, strict=True)
            ]
            for event in dead:
                await event.wait()
            await self.fleet.start(*self.of)
            await asyncio.gather(*things)


@pytest.fixture(scope="module")
def deaths(
    server: Server, model: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deaths]:
    directory = tmp_path_factory.mktemp("kill_points")
    with Fleet(server.url, f"kill-{uuid4().hex[:8]}", directory, model) as fleet:
        deaths = Deaths(fleet)
        asyncio.run(deaths.happen())
        yield deaths


@pytest.mark.parametrize("case", CASES)
def test_a_worker_that_dies_there_loses_nothing(deaths: Deaths, case: str) -> None:
    death = deaths.of[case]
    assert death.returncode == -signal.SIGKILL, f"{death.kill_at} was never reached"
    assert death.result is not None
    if case != "strict":
        assert (death.result.status, death.result.output) == (RunStatus.COMPLETED, "done")
    assert death.story.end(death.run_id).result == death.result
    assert death.info is not None
    assert death.info.crashes == (0 if death.kill_at == "after_finish" else 1)
    assert death.info.attempt == death.info.crashes + 1


@pytest.mark.parametrize("case", CASES)
def test_a_subscriber_hears_each_committed_event_once_across_the_crash(
    deaths: Deaths, case: str
) -> None:
    death = deaths.of[case]
    assert death.heard.committed == death.story.events
    taken_over = death.story.all(AttemptStarted)
    assert all((b.attempt, b.cause) == (2, AttemptCause.CRASH) for b in taken_over)
    kinds = death.heard.kinds()
    assert kinds.count(EventKind.SUPERSEDED) == len(taken_over)
    assert kinds.count(EventKind.AGENT_FINISHED) == 1
    if taken_over:
        after = death.heard.events[kinds.index(EventKind.SUPERSEDED) :]
        assert all(event.attempt != 1 for event in after)


@pytest.mark.parametrize("case", CASES)
def test_every_call_has_one_result_and_a_lost_side_effect_is_called_unknown(
    deaths: Deaths, case: str
) -> None:
    death = deaths.of[case]
    said = death.story.all(MessageAppended, death.run_id)
    calls = [(body.turn, n) for body in said for n in range(len(body.message.tool_calls))]
    assert sorted(death.story.results(death.run_id)) == calls
    assert calls
    check_calls(deaths.fleet, [death.story])
    for body in death.story.results(death.run_id).values():
        unknown = body.outcome is ToolOutcome.UNKNOWN
        assert ('"outcome_unknown"' in body.message.content) == unknown


@pytest.mark.parametrize("case", CASES)
def test_turns_and_tokens_count_on_across_the_crash(deaths: Deaths, case: str) -> None:
    death = deaths.of[case]
    said = death.story.all(MessageAppended, death.run_id)
    assert [body.turn for body in said] == list(range(1, len(said) + 1))
    usage = RunUsage()
    for body in said:
        usage = usage.plus(body.usage)
    assert death.result is not None
    assert (death.result.turns, death.result.usage) == (len(said), usage)


def test_a_run_goes_on_from_its_checkpoint(deaths: Deaths) -> None:
    records = deaths.of["after_checkpoint"].story.records
    (checkpoint,) = [record for record in records if isinstance(record.body, Checkpoint)]
    (taken_over,) = [record for record in records if isinstance(record.body, AttemptStarted)]
    assert taken_over.parent_id == checkpoint.record_id
    assert isinstance(checkpoint.body, Checkpoint)
    run = checkpoint.body.open_run
    assert run is not None
    assert (run.turn, run.base_id, run.usage.request_count) == (1, "", 1)


async def test_the_keyspace_is_sound_after_all_deaths(deaths: Deaths) -> None:
    await check_rest(deaths.fleet)


@pytest.mark.parametrize(
    ("case", "outcomes", "executions"),
    [
        ("after_run_started", [ToolOutcome.OK, ToolOutcome.OK], 2),
        ("after_message_appended", [ToolOutcome.UNKNOWN, ToolOutcome.OK], 1),
        ("after_tool_intent", [ToolOutcome.OK, ToolOutcome.UNKNOWN], 1),
        ("after_tool_ran", [ToolOutcome.UNKNOWN, ToolOutcome.OK], 2),
        ("after_content_kept", [ToolOutcome.OK, ToolOutcome.OK], 3),
        ("after_checkpoint", 101 * [ToolOutcome.OK], 101),
        ("before_finish", [ToolOutcome.OK, ToolOutcome.OK], 2),
        ("reconcile", [ToolOutcome.OK, ToolOutcome.OK], 2),
        ("reconcile_unknown", [ToolOutcome.UNKNOWN], 0),
        ("read_only", [ToolOutcome.OK, ToolOutcome.OK], 3),
        ("idempotent", [ToolOutcome.OK, ToolOutcome.OK], 3),
        ("strict", [ToolOutcome.UNKNOWN, ToolOutcome.CANCELLED], 1),
    ],
)
def test_what_was_under_way_decides_what_is_repeated_and_what_is_reported(
    deaths: Deaths, case: str, outcomes: list[ToolOutcome], executions: int
) -> None:
    death = deaths.of[case]
    assert death.outcomes == outcomes
    assert len(deaths.fleet.ledger.all(session=death.story.session_id)) == executions


@pytest.mark.parametrize(("case", "tool"), [("read_only", "look"), ("idempotent", "stamp")])
def test_a_repeatable_call_runs_again_with_the_same_operation_key(
    deaths: Deaths, case: str, tool: str
) -> None:
    first = deaths.fleet.ledger.all(tool, key=f"{deaths.of[case].run_id}:1:0")
    assert [execution.attempt for execution in first] == [1, 2]
    assert first[0].pid != first[1].pid


def test_a_side_effect_that_its_handler_can_look_up_is_reported_as_it_was(deaths: Deaths) -> None:
    death = deaths.of["reconcile"]
    result = death.story.results(death.run_id)[1, 0]
    assert (result.attempt, result.message.content) == (2, "charge found")


def test_an_agent_that_wants_certainty_fails_the_run(deaths: Deaths) -> None:
    result = deaths.of["strict"].result
    assert result is not None
    assert (result.status, result.stop_reason) == (RunStatus.FAILED, StopReason.RUNTIME_ERROR)
    assert "the outcome of pay" in (result.error or "")
