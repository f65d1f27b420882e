"""A turn costs no more work where much has been said: history is passed on, and not copied."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from tests.loop.agents import World, agent_of, asked
from tests.loop.memory_run import Journal, MemoryRun
from tests.loop.scripted_model import Answer, call, calls, text

from runlane.journal.wire.messages import (
    AssistantMessage,
    ContextMessage,
    ToolMessage,
    UserMessage,
)
from runlane.journal.wire.tree import Checkpoint, HistoryImported
from runlane.worker import TurnSnapshot

LENGTH = 1000
TURNS = 6
FEW = 10
"""Messages of its own that a turn may look at, whatever there was before."""

HISTORY: tuple[ContextMessage, ...] = tuple(
    each for n in range(LENGTH // 2) for each in (UserMessage(f"{n}?"), AssistantMessage(f"{n}!"))
)
WORK: list[Answer] = [
    *(calls(call("look", number=number), call("stamp")) for number in range(TURNS - 1)),
    text("done"),
]


class Counted(list[ContextMessage]):
    """A transcript that counts how many of its messages are looked at."""

    looks = 0

    def __iter__(self) -> Iterator[ContextMessage]:
        for message in super().__iter__():
            self.looks += 1
            yield message

    def __getitem__(self, place: Any) -> Any:
        found = cast("list[ContextMessage] | ContextMessage", super().__getitem__(place))
        self.looks += len(found) if isinstance(found, list) else 1
        return found

    def copy(self) -> list[ContextMessage]:
        self.looks += len(self)
        return super().copy()


class Watching:
    """Looks at every moment, and at the last message of each snapshot."""

    def __getattr__(self, name: str) -> Any:
        if name not in ("on_run_start", "after_model", "before_tool", "after_tool", "after_turn"):
            raise AttributeError(name)

        async def watch(snapshot: TurnSnapshot, *_: object, **__: object) -> None:
            assert snapshot.messages[-1] is not None

        return watch


async def looks_of_a_run(journal: Journal, **options: Any) -> tuple[int, list[Any]]:
    """Return at how many messages a run looks, and what its model was asked."""
    run = MemoryRun(journal)
    counted = Counted(run.projection.messages)
    run.projection.messages = counted
    agent = agent_of(WORK, World(journal), **options)
    await run.carry_on(agent)
    assert run.projection.messages is counted, "it was not put in another list"
    return counted.looks, asked(agent)


@pytest.mark.parametrize("hooks", [(), (Watching(),)])
async def test_a_turn_passes_the_history_on_once(journal: Journal, hooks: tuple[Any, ...]) -> None:
    journal.commits.append((Checkpoint(messages=HISTORY),))
    looks, contexts = await looks_of_a_run(journal, hooks=hooks)
    assert len(contexts) == TURNS
    assert looks <= TURNS * (LENGTH + 3 * TURNS + FEW)
    for context in contexts:
        passed = context.messages[1 : LENGTH + 1]
        assert all(a is b for a, b in zip(passed, HISTORY, strict=True)), "no copies"


@pytest.mark.parametrize("stray", [(), (ToolMessage("x", "look", "?"),)])
async def test_a_history_from_elsewhere_is_checked_and_mended_once_in_a_run(
    journal: Journal, stray: tuple[ToolMessage, ...]
) -> None:
    history = (*stray, *HISTORY)
    journal.commits.append((HistoryImported(format="x", document="", messages=history),))
    looks, contexts = await looks_of_a_run(journal)
    assert looks <= (TURNS + 2) * (LENGTH + 3 * TURNS + FEW)
    assert all(context.messages[1 : LENGTH + 1] == HISTORY for context in contexts)


async def test_a_record_is_folded_in_without_a_look_at_those_before_it(journal: Journal) -> None:
    journal.commits.append((Checkpoint(messages=HISTORY),))
    before = len(journal.bodies)
    await looks_of_a_run(journal)
    projection = Journal(journal.commits[:1]).project()
    counted = Counted(projection.messages)
    projection.messages = counted
    for body in journal.bodies[before:]:
        projection.add(body)
    assert counted.looks == 0
    assert projection.messages == journal.project().messages
