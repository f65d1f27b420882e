"""What the worker processes of these tests serve: agents whose tools leave traces in a file.

`E2E_AGENTS` names the agents; one whose name begins with `strict` fails a run rather than report
an unknown outcome. `LEDGER` is the file; gates, which tools wait for, are files beside it.
"""

import asyncio
import os
import signal
import time
from pathlib import Path

from tests.e2e.ledger import Execution, Ledger

from runlane.worker import (
    Agent,
    App,
    ModelConfig,
    OpenAIModelAdapter,
    RecoveryPolicy,
    RuntimePolicy,
    ToolCallContext,
    ToolEffect,
    tool,
)

LEDGER = Ledger(Path(os.environ["LEDGER"]))
POLL_S = 0.02


def _enter(name: str, context: ToolCallContext) -> None:
    LEDGER.enter(
        Execution(
            tool=name,
            key=context.operation_key,
            attempt=context.attempt,
            pid=os.getpid(),
            session=context.session_id,
        )
    )


def _is_open(gate: str) -> bool:
    return LEDGER.path.with_name(gate).exists()


async def _opened(gate: str) -> None:
    while not _is_open(gate):  # noqa: ASYNC110 (it is a file)
        await asyncio.sleep(POLL_S)


@tool(effect=ToolEffect.READ_ONLY)
async def look(context: ToolCallContext) -> str:
    """Only look."""
    _enter("look", context)
    return "seen"


@tool(effect=ToolEffect.IDEMPOTENT)
async def stamp(context: ToolCallContext) -> str:
    """Leave a mark; a second one with the same key changes nothing."""
    _enter("stamp", context)
    return "stamped"


@tool
async def pay(context: ToolCallContext, amount: int = 1) -> str:
    """Pay; nobody can tell afterwards whether it happened."""
    _enter("pay", context)
    return f"paid {amount}"


@tool
async def charge(context: ToolCallContext) -> str:
    """Pay in a way that can be looked up."""
    _enter("charge", context)
    return "charged"


@charge.reconcile
async def find_charge(context: ToolCallContext) -> str | None:
    """Look it up."""
    return "charge found" if LEDGER.all("charge", key=context.operation_key) else None


@tool(effect=ToolEffect.READ_ONLY)
async def hold(context: ToolCallContext, gate: str) -> str:
    """Wait for a gate; stops when it is told to."""
    _enter("hold", context)
    await _opened(gate)
    return "held"


@tool
async def hold_and_pay(context: ToolCallContext, gate: str) -> str:
    """Pay, and wait for a gate before saying so; stops when it is told to."""
    _enter("hold_and_pay", context)
    await _opened(gate)
    return "paid"


@tool(effect=ToolEffect.READ_ONLY)
def hold_thread(context: ToolCallContext, gate: str) -> str:
    """Wait for a gate in a thread, which nobody can stop."""
    _enter("hold_thread", context)
    while not _is_open(gate):
        time.sleep(POLL_S)
    return "held"


@tool
async def freeze(context: ToolCallContext, seconds: float) -> str:
    """Hold up the event loop of the whole process, as no tool should."""
    _enter("freeze", context)
    time.sleep(seconds)  # noqa: ASYNC251 (the fault that is tested)
    return "thawed"


@tool(effect=ToolEffect.READ_ONLY)
async def poison(context: ToolCallContext) -> str:
    """Kill the process."""
    _enter("poison", context)
    os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


@tool(effect=ToolEffect.READ_ONLY)
async def recite(context: ToolCallContext, size: int) -> str:
    """Say so many characters."""
    _enter("recite", context)
    return "0123456789" * (size // 10)


TOOLS = (look, stamp, pay, charge, hold, hold_and_pay, hold_thread, freeze, poison, recite)


def _agent(name: str) -> Agent:
    strict = name.startswith("strict")
    return Agent(
        name,
        OpenAIModelAdapter(ModelConfig.from_env()),
        system_prompt="You are a clerk.",
        tools=TOOLS,
        runtime_policy=RuntimePolicy(max_repeated_tool_calls=1000),
        recovery_policy=RecoveryPolicy.FAIL if strict else RecoveryPolicy.REPORT,
    )


app = App([_agent(name) for name in os.environ["E2E_AGENTS"].split(",")])
