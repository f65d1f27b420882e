"""The loop of tada-core: `AgentLoop`, which keeps a conversation in memory; without compaction."""

import asyncio
from importlib import import_module
from typing import Any, Final

from bench.peers.answering import answer
from bench.peers.timing import costs
from bench.script import ANSWER, INPUT_TOKENS, OUTPUT_TOKENS, RESULT, TASK, TOOL, Script

_tada: Final[Any] = import_module("tada_core")
_model: Final[Any] = import_module("tada_core.contracts.model")
_session: Final[Any] = import_module("tada_core.contracts.session")
_tools: Final[Any] = import_module("tada_core.contracts.tools")
_uvloop: Final[Any] = import_module("uvloop")

_SCHEMA: Final = {
    "type": "object",
    "properties": {"number": {"type": "integer"}},
    "required": ["number"],
}
_STEPS_MAX: Final = 1000


class _Model(_model.ModelClient):  # type: ignore[misc]
    def __init__(self, script: Script) -> None:
        self._script = script

    async def stream(self, request: Any) -> Any:
        made, kind = _model.AssistantEvent, _model.AssistantEventKind
        calls = self._script.next()
        for call_id, arguments in calls:
            yield made(
                kind=kind.TOOL_USE, tool_use_id=call_id, tool_name=TOOL, tool_input=arguments
            )
        if not calls:
            yield made(kind=kind.TEXT_DELTA, text_delta=ANSWER)
        usage = _session.TokenUsage(input_tokens=INPUT_TOKENS, output_tokens=OUTPUT_TOKENS)
        yield made(kind=kind.USAGE, usage=usage)
        reason = _model.StopReason.TOOL_USE if calls else _model.StopReason.STOP
        yield made(kind=kind.MESSAGE_STOP, stop_reason=reason)


async def _look(_: str) -> str:
    return RESULT


class Loops:
    """Loops whose calls of one response run one after another, or all at once."""

    def __init__(self) -> None:
        self._script = Script()
        self._loop = asyncio.Runner(loop_factory=_uvloop.new_event_loop)

    def fresh(self, turns: int, calls: int, parallel: bool, times: int) -> list[float]:
        """Return what each of so many runs costs that begin a conversation of their own."""
        agent = self._agent(parallel)

        async def run() -> None:
            self._script.begin(turns, calls)
            await _turn(agent, _tada.SessionState(), 2 + turns * (1 + calls))

        return self._loop.run(costs(times, run))

    def onward(self, number: int, times: int) -> list[float]:
        """Return what each run of one conversation costs from that number on."""
        agent, state = self._agent(False), _tada.SessionState()

        async def measure() -> list[float]:
            await _turn(agent, state, 2)
            state.messages += state.messages * (number - 2)
            return await costs(times, lambda: _turn(agent, state, len(state.messages) + 2))

        return self._loop.run(measure())

    def _agent(self, parallel: bool) -> Any:
        tools = _tools.InMemoryToolExecutor()
        definition = _tools.ToolDefinition(TOOL, "Look at something.", _SCHEMA, parallel=parallel)
        tools.register(definition, _look)
        agent = _tada.AgentLoop(
            _Model(self._script), max_iterations=_STEPS_MAX, compaction=_tada.NeverCompact()
        )
        agent.set_tool_executor(tools)
        return agent


async def _turn(agent: Any, state: Any, messages: int) -> None:
    async for _ in agent.run_turn(state, TASK):
        pass
    if len(state.messages) != messages:
        raise RuntimeError(f"the run took another way: {state.messages[-3:]}")


def main() -> None:
    """Answer until standard input ends."""
    loops = Loops()
    answer({"fresh": loops.fresh, "onward": loops.onward})


if __name__ == "__main__":
    main()
