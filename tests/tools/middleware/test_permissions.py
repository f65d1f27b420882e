import asyncio
import json
from typing import Any, cast

import pytest
from tests.tools.middleware.support import Intents, call
from tests.tools.support import runtime_of

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.records import ToolOutcome
from runlane.worker.control.cancellation import CancellationToken
from runlane.worker.tools import (
    AllowAllPolicy,
    DenyListPolicy,
    PermissionDecision,
    PermissionMiddleware,
    PermissionPolicy,
    ToolCallContext,
    ToolControl,
    ToolResult,
    tool,
)

SECRET = "hunter2"


@tool
async def pay(amount: int = 1) -> str:
    return f"paid {amount}"


class Saying:
    """Says always the same, or raises it."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def authorize(self, context: ToolCallContext) -> PermissionDecision:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return cast("PermissionDecision", self._answer)


class Awaited(Saying):
    """The same after a while."""

    async def authorize(self, context: ToolCallContext) -> PermissionDecision:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().authorize(context)


class Passing(Saying):
    """The same, by a function that is not async itself."""

    def authorize(self, context: ToolCallContext) -> Any:
        return Awaited(self._answer).authorize(context)


async def ask(
    policy: PermissionPolicy, token: CancellationToken | None = None, **arguments: Any
) -> ToolResult:
    """Make one call; it begins if it is permitted, and else not."""
    intents = Intents()
    async with runtime_of(pay, middlewares=[PermissionMiddleware(policy)]) as runtime:
        result = await call(runtime, "pay", intents=intents, token=token, **arguments)
    assert bool(intents.begun) is (result.outcome is ToolOutcome.OK)
    return result


def error_of(result: ToolResult) -> str:
    """What the model is told; the run goes on."""
    assert (result.outcome, result.control) == (ToolOutcome.ERROR, ToolControl.CONTINUE)
    payload: dict[str, str] = json.loads(result.content)
    assert payload.keys() == {"status", "tool", "error"}
    assert SECRET not in result.content
    return payload["error"]


async def test_every_call_may_be_permitted() -> None:
    assert (await ask(AllowAllPolicy(), amount=5)).content == "paid 5"


@pytest.mark.parametrize("denied", [["pay"], {"look", "PAY"}, ("Pay",)])
async def test_a_tool_on_the_deny_list_is_not_called(denied: Any) -> None:
    told = error_of(await ask(DenyListPolicy(denied)))
    assert told == "permission denied: the tool is on the deny list"


@pytest.mark.parametrize("denied", [[], ["look"], ["pa", "payy"]])
async def test_any_other_tool_is(denied: list[str]) -> None:
    assert not (await ask(DenyListPolicy(denied))).is_error


def test_one_name_is_no_list() -> None:
    with pytest.raises(InvalidInputError, match="denied must be a list of names"):
        DenyListPolicy("pay")


@pytest.mark.parametrize("kind", [Saying, Awaited, Passing])
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (PermissionDecision(allowed=False, reason="not yours"), "not yours"),
        (PermissionDecision(allowed=False), "the policy says so"),
        (ValueError(SECRET), "the policy failed"),
        (None, "the policy gave no valid decision"),
        (True, "the policy gave no valid decision"),
    ],
)
async def test_what_is_not_permitted_is_an_error(
    kind: type[Saying], answer: Any, told: str
) -> None:
    assert error_of(await ask(kind(answer))) == f"permission denied: {told}"


@pytest.mark.parametrize("kind", [Saying, Awaited, Passing])
async def test_a_policy_may_be_any_code(kind: type[Saying]) -> None:
    permitted = kind(PermissionDecision(allowed=True))
    assert (await ask(permitted)).content == "paid 1"


async def test_a_policy_sees_the_call() -> None:
    class Frugal:
        def authorize(self, context: ToolCallContext) -> PermissionDecision:
            return PermissionDecision(allowed=context.arguments["amount"] < 10)

    assert not (await ask(Frugal(), amount=1)).is_error
    assert (await ask(Frugal(), amount=10)).is_error


async def test_a_run_that_is_stopped_waits_for_no_permission() -> None:
    class Slow:
        async def authorize(self, context: ToolCallContext) -> PermissionDecision:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

    token, asked = CancellationToken(), asyncio.Event()
    asking = asyncio.create_task(ask(Slow(), token))
    await asked.wait()
    token.cancel("user left")
    assert await asking == ToolResult.cancelled("pay", "user left")


def test_a_policy_that_is_not_async_decides_at_once() -> None:
    assert PermissionMiddleware(AllowAllPolicy()).immediate
    assert PermissionMiddleware(DenyListPolicy([])).immediate
    assert not PermissionMiddleware(Awaited(None)).immediate


def test_a_decision_is_yes_or_no() -> None:
    unsure: Any = "yes"
    with pytest.raises(InvalidInputError, match="allowed must be True or False"):
        PermissionDecision(allowed=unsure)
