"""EJAgent's loop: `BaseAgent` of ejagent-core, alone or with its recorder and journal in files.

An agent has one conversation: each run of a new one has an agent of its own, which is made before
the clock starts. A long conversation is put together from what its first run has left.
"""

import asyncio
import logging
from collections.abc import Mapping
from importlib import import_module
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.peers.answering import answer
from bench.peers.ejagent_jsonl import write_journal
from bench.peers.timing import costs
from bench.script import ANSWER, INPUT_TOKENS, OUTPUT_TOKENS, RESULT, TASK, TOOL, Script

_ejagent: Final[Any] = import_module("ejagent")
_journal: Final[Any] = import_module("ejagent.session.journal")
_result: Final[Any] = import_module("ejagent.agent.result")
_uvloop: Final[Any] = import_module("uvloop")

_USAGE: Final[Any] = _ejagent.ModelUsage(INPUT_TOKENS, OUTPUT_TOKENS, INPUT_TOKENS + OUTPUT_TOKENS)
_DEFINITION: Final[Any] = _ejagent.ToolDefinition(
    name=TOOL,
    description="Look at something.",
    parameters={
        "type": "object",
        "properties": {"number": {"type": "integer"}},
        "required": ["number"],
    },
    effect=_ejagent.ToolEffect("read_only"),
)
_STEPS_MAX: Final = 1000


class _Model(_ejagent.ModelAdapter):  # type: ignore[misc]
    def __init__(self, script: Script) -> None:
        self._script = script

    async def complete(self, context: Any, *, cancellation: Any = None) -> Any:
        calls = self._script.next()
        if not calls:
            return _ejagent.AssistantMessage(ANSWER)
        made = (_ejagent.ModelToolCall(call_id, TOOL, arguments) for call_id, arguments in calls)
        return _ejagent.AssistantMessage(None, tuple(made))

    async def stream(self, context: Any, *, cancellation: Any = None) -> Any:
        yield _ejagent.ModelResponseCompleted(await self.complete(context), _USAGE)


class _Handler(_ejagent.MethodToolHandler):  # type: ignore[misc]
    async def do_look(self, arguments: Mapping[str, Any], *, cancellation: Any) -> Any:
        return _ejagent.StepOutcome(RESULT)


class Agents:
    """Agents whose journals lie in one folder."""

    def __init__(self, folder: Path) -> None:
        self._script = Script()
        self._store = _ejagent.JsonlSessionStorage(folder)
        self._sessions = count()
        self._loop = asyncio.Runner(loop_factory=_uvloop.new_event_loop)

    def fresh(
        self, turns: int, calls: int, parallel: bool, journaled: bool, times: int
    ) -> list[float]:
        """Return what each of so many runs costs that begin a conversation of their own."""

        async def measure() -> list[float]:
            agents = iter(
                [await self._agent(self._session(), journaled, parallel) for _ in range(times)]
            )

            async def run() -> None:
                self._script.begin(turns, calls)
                _check(await next(agents).run(task=TASK), turns)

            return await costs(times, run)

        return self._loop.run(measure())

    def onward(self, number: int, journaled: bool, times: int) -> list[float]:
        """Return what each run of one conversation costs from that number on."""

        async def measure() -> list[float]:
            session = self._session()
            agent = await self._agent(session, journaled, False)
            _check(await agent.run(task=TASK), 0)
            left = agent.messages[-2:]
            agent.state.messages += [dict(message) for message in left * (number - 2)]
            if journaled:
                runs = (_run(session, number, left) for number in range(1, number))
                write_journal(self._store, session, chain.from_iterable(runs))

            async def run() -> None:
                _check(await agent.run(task=TASK), 0)

            return await costs(times, run)

        return self._loop.run(measure())

    def _session(self) -> str:
        return f"session-{next(self._sessions)}"

    async def _agent(self, session: str, journaled: bool, parallel: bool) -> Any:
        sink = (
            _ejagent.SessionRecorder(session_id=session, storage=self._store) if journaled else None
        )
        agent = _ejagent.BaseAgent(
            _Model(self._script),
            agent_id="bench",
            handlers=[_Handler([_DEFINITION])],
            runtime_policy=_ejagent.RuntimePolicy(
                max_steps=_STEPS_MAX, parallel_tool_calls=parallel
            ),
            event_sink=sink,
        )
        await agent.startup()
        return agent


def _run(session: str, number: int, messages: list[Any]) -> list[Any]:
    """Return the records of a run without tool calls."""
    said = {"session_id": session, "agent_id": "bench", "run_id": f"run-{number}"}
    draft = _journal.SessionRecordDraft
    result = _result.AgentRunResult(
        _result.RunStatus("completed"),
        _result.StopReason("text_response"),
        turns=1,
        output=ANSWER,
    )
    return [
        draft.run_started(**said, sequence=1, task=TASK),
        draft.message_appended(**said, sequence=2, message=messages[1]),
        draft.run_finished(**said, sequence=3, result=result),
    ]


def _check(result: Any, turns: int) -> None:
    if not result.succeeded or result.turns != turns + 1:
        raise RuntimeError(f"the run took another way: {result}")


def main() -> None:
    """Answer until standard input ends; informational logs are off."""
    logging.disable(logging.INFO)
    with TemporaryDirectory(prefix="bench-ejagent-") as folder:
        agents = Agents(Path(folder))
        answer({"fresh": agents.fresh, "onward": agents.onward})


if __name__ == "__main__":
    main()
