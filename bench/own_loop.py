"""runlane's own loop: as a worker drives it, and on a conversation that only memory holds."""

import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from itertools import count
from statistics import fmean
from typing import Any, Final, Protocol, Self

from msgspec import Struct

from bench.lab import BenchError
from bench.lane import AGENT, ask, carry_out, server_cpu_s, take
from bench.script import ANSWER, INPUT_TOKENS, OUTPUT_TOKENS, RESULT, TASK, TOOL, Script
from runlane.journal.ids import MAIN_BRANCH
from runlane.journal.partition import Partition
from runlane.journal.projection import Projection
from runlane.journal.wire.blobs import BlobRef
from runlane.journal.wire.control import ControlInput
from runlane.journal.wire.events import EventKind
from runlane.journal.wire.messages import AssistantMessage, ModelToolCall, ModelUsage, UserMessage
from runlane.journal.wire.records import AnyBody, RunFinished, RunStarted
from runlane.journal.wire.results import AgentRunResult
from runlane.worker import (
    Agent,
    CancellationToken,
    ModelAdapter,
    ModelContext,
    ModelResponseCompleted,
    RuntimePolicy,
    ToolEffect,
    tool,
)
from runlane.worker.loop.orchestrator import orchestrate

STEPS_MAX: Final = 1000


class Cost(Struct, frozen=True):
    """What one run costs on average.

    Attributes:
        cpu_ms: CPU time of the process that runs it.
        wall_ms: Time.
        server_cpu_ms: CPU time of the server; None where there is none.
    """

    cpu_ms: float
    wall_ms: float
    server_cpu_ms: float | None = None

    @classmethod
    def of(cls, cpu_s: float, wall_s: float, server_cpu_s: float | None = None) -> Self:
        """Return what was measured in seconds."""
        server_ms = None if server_cpu_s is None else server_cpu_s * 1e3
        return cls(cpu_s * 1e3, wall_s * 1e3, server_ms)

    @classmethod
    def mean(cls, costs: Sequence["Cost"]) -> Self:
        """Return what each of some runs cost on average."""
        server_ms = [each.server_cpu_ms for each in costs if each.server_cpu_ms is not None]
        return cls(
            fmean(each.cpu_ms for each in costs),
            fmean(each.wall_ms for each in costs),
            fmean(server_ms) if server_ms else None,
        )

    def each(self, parts: int) -> "Cost":
        """Return what each of so many equal parts costs."""
        server = self.server_cpu_ms
        return Cost(
            self.cpu_ms / parts, self.wall_ms / parts, None if server is None else server / parts
        )


class Way(Protocol):
    """How runs are driven."""

    async def take(self, agent: Agent, session: str) -> tuple[AgentRunResult, Cost]:
        """Carry out one run of a session; return its result, and what it cost."""
        ...


class InMemory:
    """Conversations that nobody keeps."""

    def __init__(self) -> None:
        self._conversations: dict[str, Projection] = {}

    async def take(self, agent: Agent, session: str) -> tuple[AgentRunResult, Cost]:
        """Carry out one run."""
        conversation = self._conversations.setdefault(session, Projection())
        began, cpu_began = time.perf_counter(), time.process_time()
        result = await _run(agent, conversation)
        return result, Cost.of(time.process_time() - cpu_began, time.perf_counter() - began)


class Journaled:
    """Sessions on a server, whose runs are claimed before the clock starts."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    async def take(self, agent: Agent, session: str) -> tuple[AgentRunResult, Cost]:
        """Carry out one run."""
        claimed = await take(self._partition, await ask(self._partition, session, TASK))
        server_began_s = await server_cpu_s(self._partition)
        began, cpu_began = time.perf_counter(), time.process_time()
        result = await carry_out(self._partition, claimed, agent)
        cpu_s, wall_s = time.process_time() - cpu_began, time.perf_counter() - began
        server_s = await server_cpu_s(self._partition) - server_began_s
        return result, Cost.of(cpu_s, wall_s, server_s)


class OwnLoop:
    """Runs of one agent, each of them checked to have gone the way of the script."""

    longest = None
    """Sessions have as many runs as one likes."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._script = Script()
        self._agents = {parallel: _agent(self._script, parallel) for parallel in (False, True)}
        self._fresh = count()
        self._runs: Counter[str] = Counter()

    async def startup(self) -> None:
        """Make the agents ready."""
        for agent in self._agents.values():
            await agent.startup()

    async def fresh(self, *, turns: int, calls: int, parallel: bool, times: int) -> Cost:
        """Return what each of so many runs costs that begin a session of their own."""
        sessions = [f"fresh-{next(self._fresh)}" for _ in range(times)]
        costs = [await self._take(self._agents[parallel], each, turns, calls) for each in sessions]
        return Cost.mean(costs)

    async def onward(self, *, number: int, times: int) -> Cost:
        """Return what each of the next runs costs of a session that has `number` - 1 or more."""
        session, agent = f"onward-{number}", self._agents[False]
        while self._runs[session] < number - 1:
            await self._take(agent, session)
        return Cost.mean([await self._take(agent, session) for _ in range(times)])

    async def _take(self, agent: Agent, session: str, turns: int = 0, calls: int = 0) -> Cost:
        self._script.begin(turns, calls)
        result, cost = await self._way.take(agent, session)
        if result.turns != turns + 1 or result.output != ANSWER:
            raise BenchError(f"the run took another way: {result}")
        self._runs[session] += 1
        return cost


class _InstantModel(ModelAdapter):
    name = "instant"

    def __init__(self, script: Script) -> None:
        self._script = script

    async def stream(
        self, context: ModelContext, *, cancellation: CancellationToken
    ) -> AsyncIterator[ModelResponseCompleted]:
        usage = ModelUsage(INPUT_TOKENS, OUTPUT_TOKENS)
        calls = self._script.next()
        if calls:
            made = (ModelToolCall(call_id, TOOL, arguments) for call_id, arguments in calls)
            yield ModelResponseCompleted(AssistantMessage(None, tuple(made)), usage)
        else:
            yield ModelResponseCompleted(AssistantMessage(ANSWER), usage)


def _agent(script: Script, parallel: bool) -> Agent:
    @tool(name=TOOL, effect=ToolEffect.READ_ONLY)
    async def look(number: int) -> str:
        """Look at something."""
        return RESULT

    policy = RuntimePolicy(max_steps=STEPS_MAX, parallel_tool_calls=parallel)
    return Agent(AGENT, _InstantModel(script), tools=[look], runtime_policy=policy)


class UnjournaledRun:
    """Implements `RunSession`: its journal is the conversation itself, and nobody listens."""

    def __init__(self, conversation: Projection) -> None:
        self.run_id = "run"
        self.session_id = "session"
        self.agent_name = AGENT
        self.attempt = 1
        self.projection = conversation
        self.cancellation = CancellationToken()
        self.server_changed = False
        self.blob_bytes_max = 0
        self.steering = tuple[ControlInput, ...]()
        self.elapsed_s = 0.0

    async def commit(self, *bodies: AnyBody) -> None:
        """Fold records in."""
        for body in bodies:
            self.projection.add(body)

    async def keep(self, content: bytes, media_type: str) -> BlobRef:
        """Keep nothing: no result is that large."""
        raise BenchError(f"{len(content)} bytes of {media_type} came up")

    def emit(self, kind: EventKind, turn: int, payload: dict[str, Any] | None = None) -> None:
        """Say nothing."""

    def say(self, turn: int, delta: str) -> None:
        """Say nothing."""

    def check_lease(self) -> None:
        """Nothing is held, and nothing can be lost."""

    async def reach_turn_boundary(self) -> None:
        """Go on."""


async def _run(agent: Agent, conversation: Projection) -> AgentRunResult:
    run = UnjournaledRun(conversation)
    started = RunStarted(
        run_id=run.run_id,
        attempt=1,
        agent=AGENT,
        version=agent.version,
        worker_id="bench",
        message=UserMessage(TASK),
    )
    await run.commit(started)
    ending = await orchestrate(agent, run)
    result = ending.result(conversation)
    end = RunFinished(run_id=run.run_id, branch_id=MAIN_BRANCH, result=result)
    await run.commit(*ending.last, end)
    return result
