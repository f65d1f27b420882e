"""The order in which a subscriber hears what happens, as the page about events gives it."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from itertools import groupby
from typing import Final
from uuid import uuid4

import pytest
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story
from tests.e2e.orders import ANSWER, ASKED, END, order, scene_of
from tests.e2e.waiting import until

from runlane.journal.server import Server
from runlane.journal.wire.records import ToolCompleted
from runlane.journal.wire.tree import SteeringApplied
from runlane.producer import Client, EventKind, RunStatus, Settings, StopReason

APP: Final = "tests.e2e.loop_app:app"
LOUDER: Final = "[[say louder]]"
LONG: Final = " ".join(["blah"] * 100)


@pytest.fixture(scope="module")
def fleet(
    server: Server, model: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fleet]:
    """One worker for all tests: none of them harms it."""
    directory = tmp_path_factory.mktemp("orders")
    with Fleet(server.url, f"orders-{uuid4().hex[:8]}", directory, model) as opened:
        asyncio.run(opened.start(app=APP))
        yield opened


@pytest.fixture
async def client(fleet: Fleet) -> AsyncIterator[Client]:
    settings = Settings(redis_url=fleet.url, prefix=fleet.prefix)
    async with await Client.connect(settings=settings) as connected:
        yield connected


async def test_a_plain_answer(fleet: Fleet, client: Client) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        result, heard = await scene.run("[[say good day]]")
        started = next(e for e in scene.heard.events if e.kind is EventKind.AGENT_STARTED)
    assert (started.payload["agent"], started.payload["version"]) == ("guard", "1")
    assert result.output == "good day"
    assert heard == order("queued started turn Δ response", END)


async def test_reasoning_precedes_the_answer(fleet: Fleet, client: Client) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        _, heard = await scene.run("[[think hm]] [[say good day]]")
    thought = EventKind.ASSISTANT_THINKING_DELTA.value
    assert heard == [*order("queued started turn"), thought, *order("Δ response", END)]


async def test_calls_one_after_the_other(fleet: Fleet, client: Client) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        _, heard = await scene.run("[[tools pay ; report ; look]] [[tool stamp]] [[say done]]")
    assert heard == [
        *order(ASKED, "t+ t- t+ p p t- t+ t- turned"),
        *order("turn response t+ t- turned", ANSWER, "finished"),
    ]


async def test_calls_side_by_side_end_in_source_order_and_others_wait_for_them(
    fleet: Fleet, client: Client
) -> None:
    async with scene_of(fleet, client, "reader") as scene:
        wait = f'hold {{"gate": "{scene.gate}"}}'
        handle = await scene.session.run(
            f"[[tools {wait} ; report ; look ; pay ; look]] [[say done]]"
        )
        await scene.until_held()
        await until(lambda: scene.heard.kinds().count(EventKind.TOOL_PROGRESSED) == 2, "it reports")
        scene.open()
        await scene.end(handle)
        heard = scene.kinds(handle)
        done = [e for e in scene.heard.events if e.kind is EventKind.TOOL_COMPLETED]
    assert [event.payload["index"] for event in done] == [0, 1, 2, 3, 4]
    assert heard == [
        *order(ASKED, "t+ t+ t+ p p t- t- t- t+ t- t+ t- turned"),
        *order(ANSWER, "finished"),
    ]


@pytest.mark.parametrize(
    ("control", "reason"),
    [
        ("complete", StopReason.TOOL_COMPLETION),
        ("reject", StopReason.TOOL_REJECTED),
        ("cancel", StopReason.TOOL_CANCELLED),
    ],
)
async def test_a_tool_that_ends_the_run_lets_the_calls_behind_it_end_unmade(
    fleet: Fleet, client: Client, control: str, reason: StopReason
) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        result, heard = await scene.run(
            f'[[tools look ; end {{"control": "{control}"}} ; pay ; fly]]'
        )
    assert result.stop_reason is reason
    assert heard == order(ASKED, "t+ t- t+ t- t- t-", END)


async def test_a_tool_that_ends_the_run_waits_for_those_beside_it(
    fleet: Fleet, client: Client
) -> None:
    async with scene_of(fleet, client, "reader") as scene:
        wait = f'hold {{"gate": "{scene.gate}"}}'
        handle = await scene.session.run(
            f'[[tools {wait} ; end {{"control": "reject"}} ; {wait} ; pay]]'
        )
        await scene.until_held(2)
        scene.open()
        result, heard = await scene.end(handle), scene.kinds(handle)
    assert result.stop_reason is StopReason.TOOL_REJECTED
    assert heard == order(ASKED, "t+ t+ t+ t- t- t- t-", END)


@pytest.mark.parametrize("call", ["fly", 'pay {"amount": "much"}', 'pay {"price": 1}'])
async def test_a_call_that_cannot_be_made_does_not_start(
    fleet: Fleet, client: Client, call: str
) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        result, heard = await scene.run(f"[[tools {call} ; look]] [[say I see]]")
    assert result.output == "I see"
    assert heard == order(ASKED, "t- t+ t- turned", ANSWER, "finished")


async def test_the_third_call_that_is_the_same_does_not_start(fleet: Fleet, client: Client) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        result, heard = await scene.run("[[tool pay]] [[tool pay]] [[tools pay ; look]]")
    assert result.stop_reason is StopReason.REPEATED_TOOL_CALL
    assert heard == [
        *order(ASKED, "t+ t- turned turn response t+ t- turned"),
        *order("turn response t- t-", END),
    ]


async def test_a_limit_between_two_turns_ends_the_run_there(fleet: Fleet, client: Client) -> None:
    async with scene_of(fleet, client, "brief") as scene:
        result, heard = await scene.run("[[tool look]] [[say done]]")
    assert result.stop_reason is StopReason.MAX_STEPS
    assert heard == order(ASKED, "t+ t-", END)


async def test_a_run_that_must_finish_explicitly_takes_another_turn_for_each_text(
    fleet: Fleet, client: Client
) -> None:
    async with scene_of(fleet, client, "finisher") as scene:
        result, heard = await scene.run('[[tool finish {"summary": "all done"}]]')
        assert (result.stop_reason, heard) == (
            StopReason.TOOL_COMPLETION,
            order(ASKED, "t+ t-", END),
        )
        result, heard = await scene.run("[[say all done]]")
    assert result.stop_reason is StopReason.MAX_NO_TOOL_RESPONSES
    assert heard == order("queued started", ANSWER, ANSWER, ANSWER, "finished")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("400", StopReason.PROVIDER_ERROR),
        ("401", StopReason.PROVIDER_AUTH),
        ("400 context_length_exceeded", StopReason.CONTEXT_OVERFLOW),
    ],
)
async def test_a_provider_that_fails_ends_the_turn_and_the_run(
    fleet: Fleet, client: Client, fault: str, reason: StopReason
) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        result, heard = await scene.run(f"[[tool look]] [[fault {fault}]]")
    assert result.stop_reason is reason
    assert heard == order(ASKED, "t+ t- turned turn", END)


@pytest.mark.parametrize("fault", ["truncate", "error", "reset"])
async def test_a_provider_that_fails_in_its_answer_leaves_it_without_a_response(
    fleet: Fleet, client: Client, fault: str
) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        result, heard = await scene.run(f"[[fault {fault}]]")
    assert result.stop_reason is StopReason.PROVIDER_ERROR
    assert heard == order("queued started turn Δ", END)


async def test_a_run_that_is_continued_begins_as_such(fleet: Fleet, client: Client) -> None:
    async with scene_of(fleet, client, "paused") as scene:
        result, heard = await scene.run("[[tool look]] [[tool stamp]] [[tool pay]] [[say done]]")
        assert (result.stop_reason, result.output) == (StopReason.BEHAVIOR_STOP, "paused")
        assert heard == order(ASKED, "t+ t- turned turn response t+ t-", END)
        handle = await scene.session.continue_run()
        result, heard = await scene.end(handle), scene.kinds(handle)
    assert result.output == "done"
    assert heard == [
        *order("queued continued turn response t+ t- turned"),
        *order(ANSWER, "finished"),
    ]


@pytest.mark.parametrize(
    ("call", "reason"),
    [("stamp", StopReason.BEHAVIOR_STOP), ('freeze {"seconds": 1}', StopReason.RUNTIME_ERROR)],
)
async def test_a_hook_that_stops_the_run_or_fails_within_a_turn_leaves_calls_unmade(
    fleet: Fleet, client: Client, call: str, reason: StopReason
) -> None:
    async with scene_of(fleet, client, "interrupted") as scene:
        result, heard = await scene.run(f"[[tools pay ; {call} ; pay]] [[say done]]")
    assert result.stop_reason is reason
    assert heard == order(ASKED, "t+ t- t- t-", END)


async def test_a_call_that_a_hook_denies_does_not_start(fleet: Fleet, client: Client) -> None:
    async with scene_of(fleet, client, "interrupted") as scene:
        _, heard = await scene.run('[[tools pay ; recite {"size": 9} ; pay]] [[say done]]')
    assert heard == order(ASKED, "t+ t- t- t+ t- turned", ANSWER, "finished")


async def test_what_a_hook_says_within_a_turn_comes_before_its_end(
    fleet: Fleet, client: Client
) -> None:
    async with scene_of(fleet, client, "interrupted") as scene:
        result, heard = await scene.run("[[tools pay ; charge ; pay]] [[say done]]")
    assert result.output == "louder"
    assert heard == order(ASKED, "t+ t- t- t- steered turned", ANSWER, "finished")


async def test_what_a_hook_says_after_a_turn_comes_before_the_next(
    fleet: Fleet, client: Client
) -> None:
    async with scene_of(fleet, client, "interrupted") as scene:
        result, heard = await scene.run("[[tool look]] [[say done]]")
    assert result.output == "louder"
    assert heard == order(ASKED, "t+ t- turned steered", ANSWER, "finished")


async def test_what_is_said_while_a_tool_runs_is_heard_in_the_next_turn(
    fleet: Fleet, client: Client
) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        handle = await scene.session.run(
            f'[[tools hold {{"gate": "{scene.gate}"}} ; pay]] [[say done]]'
        )
        await scene.until_held()
        for text in ("first", LOUDER):
            assert (await scene.session.steer(text)).accepted
        scene.open()
        result, heard = await scene.end(handle), scene.kinds(handle)
        story = await Story.read(client, handle.session_id)
    assert result.output == "louder"
    assert [body.content for body in story.all(SteeringApplied)] == ["first", LOUDER]
    assert heard == [
        *order(ASKED, "t+ t- t+ t- turned"),
        *order("turn steered steered Δ response", END),
    ]


async def test_what_is_said_while_the_answer_comes_makes_it_no_end(
    fleet: Fleet, client: Client
) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        handle = await scene.session.run(f"[[pace 0.01]] [[say {LONG}]]")
        await scene.heard.until(EventKind.ASSISTANT_TEXT_DELTA)
        assert (await scene.session.steer(LOUDER)).accepted
        result, heard = await scene.end(handle), scene.kinds(handle)
    assert result.output == "louder"
    assert heard == order("queued started", ANSWER, "turn steered Δ response", END)


async def test_what_is_said_too_late_is_discarded_right_before_the_end(
    fleet: Fleet, client: Client
) -> None:
    async with scene_of(fleet, client, "brief") as scene:
        handle = await scene.session.run(f'[[tool hold {{"gate": "{scene.gate}"}}]]')
        await scene.until_held()
        for text in ("one", "two"):
            assert (await scene.session.steer(text)).accepted
        scene.open()
        result, heard = await scene.end(handle), scene.kinds(handle)
    assert result.stop_reason is StopReason.MAX_STEPS
    assert heard == order(ASKED, "t+ t- turned discarded discarded finished")


@pytest.mark.parametrize("answer", ["[[fault hang]]", f"[[pace 0.05]] [[say {LONG}]]"])
async def test_an_abort_while_the_model_answers_ends_the_turn_without_a_response(
    fleet: Fleet, client: Client, answer: str
) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        handle = await scene.session.run(answer)
        begun = EventKind.TURN_STARTED if "hang" in answer else EventKind.ASSISTANT_TEXT_DELTA
        await scene.heard.until(begun)
        assert (await scene.session.steer("too late")).accepted
        assert (await handle.abort("enough")).accepted
        result = await scene.end(handle)
        heard = [kind for kind in scene.kinds(handle) if not kind.endswith("_delta")]
    assert (result.stop_reason, result.error) == (StopReason.EXTERNAL_ABORT, "enough")
    assert heard == order("queued started turn aborted turned discarded finished")


@pytest.mark.parametrize(
    ("agent", "waiting", "begun"), [("guard", 1, "t+ t- t+"), ("reader", 2, "t+ t+ t+ t-")]
)
async def test_an_abort_while_tools_run_gives_each_call_its_result(
    fleet: Fleet, client: Client, agent: str, waiting: int, begun: str
) -> None:
    async with scene_of(fleet, client, agent) as scene:
        wait = f'hold {{"gate": "{scene.gate}"}}'
        handle = await scene.session.run(f"[[tools look ; {wait} ; {wait} ; pay]]")
        await scene.until_held(waiting)
        await scene.heard.until(EventKind.TOOL_COMPLETED)
        assert (await handle.abort("enough")).accepted
        result, heard = await scene.end(handle), scene.kinds(handle)
        outcomes = [
            body.outcome
            for body in (await Story.read(client, handle.session_id)).all(ToolCompleted)
        ]
    assert result.status is RunStatus.CANCELLED
    assert outcomes == ["ok", "cancelled", "cancelled", "cancelled"]
    assert heard == order(ASKED, begun, "aborted t- t- t-", END)


async def test_an_abort_of_a_run_that_waits_ends_it_before_it_has_begun(
    fleet: Fleet, client: Client
) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        first = await scene.session.run(f'[[tool hold {{"gate": "{scene.gate}"}}]] [[say done]]')
        waiting = await scene.session.run("[[say never]]")
        await scene.until_held()
        assert (await waiting.abort()).accepted
        await scene.end(waiting)
        scene.open()
        await scene.end(first)
        heard = scene.kinds(first), scene.kinds(waiting)
    assert heard == (
        order(ASKED, "t+ t- turned", ANSWER, "finished"),
        order("queued aborted finished"),
    )


async def test_a_follow_up_begins_after_the_end_of_the_run_before_it(
    fleet: Fleet, client: Client
) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        first = await scene.session.run(f'[[tool hold {{"gate": "{scene.gate}"}}]] [[say done]]')
        await scene.until_held()
        second = await scene.session.follow_up("[[say more]]")
        scene.open()
        await scene.end(second)
        runs = [event.run_id for event in scene.heard.events]
        heard = scene.kinds(first), scene.kinds(second)
    assert heard == (
        order(ASKED, "t+ t- turned", ANSWER, "finished"),
        order("queued started", ANSWER, "finished"),
    )
    switches = [run_id for run_id, _ in groupby(runs)]
    assert switches == [first.run_id, second.run_id, first.run_id, second.run_id]


async def test_a_follow_up_that_is_dropped_only_ends(fleet: Fleet, client: Client) -> None:
    async with scene_of(fleet, client, "guard") as scene:
        first = await scene.session.run(f'[[tool hold {{"gate": "{scene.gate}"}}]]')
        await scene.until_held()
        second = await scene.session.follow_up("[[say never]]")
        assert (await first.abort()).accepted
        await scene.end(first)
        result, heard = await scene.end(second), scene.kinds(second)
    assert result.stop_reason is StopReason.SUPERSEDED
    assert heard == order("queued finished")
