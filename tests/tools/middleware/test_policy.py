import asyncio
import json
import logging
from types import MappingProxyType
from typing import Any, cast

import pytest
from tests.tools.middleware.support import Counts, Intents, call
from tests.tools.support import runtime_of

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.records import ToolOutcome
from runlane.worker.control.cancellation import AgentCancelledError, CancellationToken
from runlane.worker.tools import (
    RuleBasedToolPolicy,
    ToolApprovalDecision,
    ToolApprovalRequest,
    ToolApprover,
    ToolCallContext,
    ToolControl,
    ToolEffect,
    ToolExecutionPolicy,
    ToolPolicyAction,
    ToolPolicyDecision,
    ToolPolicyMiddleware,
    ToolPolicyRule,
    ToolResult,
    tool,
)

ALLOW, DENY, ASK = ToolPolicyAction
SECRET = "hunter2"


@tool
async def pay(amount: int = 1, to: dict[str, list[str]] | None = None) -> str:
    return f"paid {amount}"


@tool(effect=ToolEffect.READ_ONLY)
async def look() -> str:
    return "sunny"


class Saying(ToolExecutionPolicy):
    """Says always the same, or raises it."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def evaluate(self, context: ToolCallContext) -> ToolPolicyDecision:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return cast("ToolPolicyDecision", self._answer)


class Approving:
    """Answers always the same, or raises it.

    Attributes:
        asked: Every request.
    """

    def __init__(self, answer: Any = ToolApprovalDecision(approved=True)) -> None:  # noqa: B008
        self.asked: list[ToolApprovalRequest] = []
        self._answer = answer

    async def approve(self, request: ToolApprovalRequest) -> ToolApprovalDecision:
        self.asked.append(request)
        if isinstance(self._answer, BaseException):
            raise self._answer
        return cast("ToolApprovalDecision", self._answer)


class Waiting:
    """Never answers."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def approve(self, request: ToolApprovalRequest) -> ToolApprovalDecision:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


async def decide(
    policy: ToolExecutionPolicy,
    approver: ToolApprover | None = None,
    *,
    name: str = "pay",
    approval_timeout_s: float = 300.0,
    token: CancellationToken | None = None,
    **arguments: Any,
) -> ToolResult:
    """Make one call; it begins if it is let through, and else not."""
    intents = Intents()
    middleware = ToolPolicyMiddleware(policy, approver, approval_timeout_s)
    async with runtime_of(pay, look, middlewares=[middleware]) as runtime:
        result = await call(runtime, name, intents=intents, token=token, **arguments)
    assert bool(intents.begun) is (result.outcome is ToolOutcome.OK)
    return result


def rejection(result: ToolResult) -> dict[str, str]:
    """What the model is told; the run ends."""
    assert (result.outcome, result.control) == (ToolOutcome.ERROR, ToolControl.REJECT)
    assert result.output == result.content
    payload: dict[str, str] = json.loads(result.content)
    assert payload.pop("status") == "rejected"
    assert payload.pop("tool") in {"pay", "look"}
    assert SECRET not in result.content
    return payload


def rules(*given: ToolPolicyRule, **options: Any) -> RuleBasedToolPolicy:
    return RuleBasedToolPolicy(given, **options)


async def test_a_call_that_is_allowed_is_made() -> None:
    assert (await decide(rules(ToolPolicyRule("all", ALLOW)))).content == "paid 1"


async def test_a_call_that_no_rule_matches_is_denied() -> None:
    assert rejection(await decide(rules())) == {"reason": "tool execution denied by policy"}
    policy = rules(default_reason="closed on sundays")
    assert rejection(await decide(policy)) == {"reason": "closed on sundays"}


async def test_the_default_may_be_to_allow() -> None:
    assert (await decide(rules(default_action=ALLOW))).content == "paid 1"


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            ToolPolicyRule("no-pay", DENY),
            {"reason": "tool execution denied by policy", "rule_id": "no-pay"},
        ),
        (ToolPolicyRule("no-pay", DENY, reason="broke"), {"reason": "broke", "rule_id": "no-pay"}),
    ],
)
async def test_a_rejection_names_the_rule(rule: ToolPolicyRule, told: dict[str, str]) -> None:
    assert rejection(await decide(rules(rule), amount=5)) == told


async def test_the_first_rule_that_matches_decides() -> None:
    policy = rules(
        ToolPolicyRule("look", ALLOW, tool_names=frozenset({"look"})),
        ToolPolicyRule("none", DENY),
        ToolPolicyRule("all", ALLOW),
    )
    assert (await decide(policy, name="look")).content == "sunny"
    assert rejection(await decide(policy))["rule_id"] == "none"


def is_small(context: ToolCallContext) -> bool:
    amount: int = context.arguments["amount"]
    return amount < 10


def is_large(context: ToolCallContext) -> bool:
    return not is_small(context)


SELECTORS: list[tuple[dict[str, Any], bool]] = [
    ({"tool_names": {"pay", "other"}}, True),
    ({"tool_names": ["Pay"]}, False),
    ({"effects": {ToolEffect.SIDE_EFFECTING}}, True),
    ({"effects": {"side_effecting"}}, True),
    ({"effects": {ToolEffect.READ_ONLY, ToolEffect.IDEMPOTENT}}, False),
    ({"tool_names": {"pay"}, "effects": {ToolEffect.READ_ONLY}}, False),
    ({"when": is_small}, True),
    ({"when": is_large}, False),
    ({"tool_names": {"pay"}, "when": is_large}, False),
]


@pytest.mark.parametrize(("selectors", "matches"), SELECTORS)
async def test_a_rule_matches_if_all_of_its_selectors_do(
    selectors: dict[str, Any], matches: bool
) -> None:
    policy = rules(ToolPolicyRule("r", ALLOW, **selectors))
    assert (await decide(policy, amount=5)).is_error is not matches


async def test_a_condition_may_wait() -> None:
    async def turns_out_small(context: ToolCallContext) -> bool:
        await asyncio.sleep(0)
        return is_small(context)

    policy = rules(ToolPolicyRule("small", ALLOW, when=turns_out_small))
    assert (await decide(policy, amount=5)).content == "paid 5"
    assert (await decide(policy, amount=50)).is_error


async def test_a_condition_is_asked_only_if_all_else_matches() -> None:
    def fail(context: ToolCallContext) -> bool:
        pytest.fail("must not be asked")

    policy = rules(
        ToolPolicyRule("look", DENY, tool_names=frozenset({"look"}), when=fail),
        ToolPolicyRule("pay", ALLOW),
    )
    assert (await decide(policy)).content == "paid 1"


def fails(context: ToolCallContext) -> bool:
    raise KeyError(SECRET)


def says_nothing(context: ToolCallContext) -> Any:
    return None


def says_one(context: ToolCallContext) -> Any:
    return 1


@pytest.mark.parametrize("when", [fails, says_nothing, says_one])
async def test_a_condition_that_fails_rejects_the_call(
    when: Any, caplog: pytest.LogCaptureFixture
) -> None:
    policy = rules(ToolPolicyRule("odd", DENY, when=when), default_action=ALLOW)
    assert rejection(await decide(policy)) == {"reason": "tool policy evaluation failed"}
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ValueError(SECRET), "tool policy evaluation failed"),
        (SystemExit(SECRET), "tool policy evaluation failed"),
        (asyncio.CancelledError(), "tool policy evaluation failed"),
        (AgentCancelledError("nobody said so"), "tool policy evaluation failed"),
        (None, "tool policy returned an invalid decision"),
        (True, "tool policy returned an invalid decision"),
        (ALLOW, "tool policy returned an invalid decision"),
    ],
)
async def test_a_policy_that_fails_rejects_the_call(answer: Any, reason: str) -> None:
    assert rejection(await decide(Saying(answer))) == {"reason": reason}


async def test_a_policy_may_be_any_code() -> None:
    decision = ToolPolicyDecision(DENY, "not on my watch", "guard")
    told = {"reason": "not on my watch", "rule_id": "guard"}
    assert rejection(await decide(Saying(decision))) == told
    assert (await decide(Saying(ToolPolicyDecision(ALLOW)))).content == "paid 1"


def limited(action: ToolPolicyAction = ALLOW) -> RuleBasedToolPolicy:
    return rules(ToolPolicyRule("few", action, max_calls_per_run=2))


LIMIT = {"reason": "tool call limit reached for policy rule 'few'", "rule_id": "few"}


async def test_a_rule_lets_so_many_calls_of_a_run_through() -> None:
    policy, run, other = limited(), Counts(), Counts()
    async with runtime_of(pay, middlewares=[ToolPolicyMiddleware(policy)]) as runtime:
        results = [await call(runtime, "pay", counts=run) for _ in range(4)]
        of_other = await call(runtime, "pay", counts=other)
    assert [each.is_error for each in results] == [False, False, True, True]
    assert rejection(results[2]) == LIMIT
    assert not of_other.is_error
    assert (run.counts, other.counts) == ({"policy:few": 4}, {"policy:few": 1})


async def test_a_run_that_goes_on_elsewhere_goes_on_counting() -> None:
    run = Counts()
    run.counts["policy:few"] = 2
    async with runtime_of(pay, middlewares=[ToolPolicyMiddleware(limited())]) as runtime:
        assert rejection(await call(runtime, "pay", counts=run)) == LIMIT


async def test_a_call_counts_though_its_approval_is_denied() -> None:
    approver, run = Approving(ToolApprovalDecision(approved=False)), Counts()
    middleware = ToolPolicyMiddleware(limited(ASK), approver)
    async with runtime_of(pay, middlewares=[middleware]) as runtime:
        results = [await call(runtime, "pay", counts=run) for _ in range(3)]
    assert len(approver.asked) == 2
    assert rejection(results[2]) == LIMIT


async def test_calls_that_no_limited_rule_matches_do_not_count() -> None:
    run = Counts()
    policy = rules(
        ToolPolicyRule("few", ALLOW, tool_names=frozenset({"pay"}), max_calls_per_run=1),
        ToolPolicyRule("all", ALLOW),
    )
    async with runtime_of(pay, look, middlewares=[ToolPolicyMiddleware(policy)]) as runtime:
        await call(runtime, "look", counts=run)
    assert run.counts == {}


NEEDED = rules(ToolPolicyRule("big", ASK, reason="it is a lot"))


async def test_a_call_that_is_approved_is_made() -> None:
    approver = Approving()
    result = await decide(NEEDED, approver, amount=500, to={"ibans": [SECRET]})
    assert result.content == "paid 500"
    (request,) = approver.asked
    assert (request.tool_name, request.tool_call_id) == ("pay", "call_1")
    assert (request.operation_key, request.reason, request.rule_id) == (
        *("run:2:0", "it is a lot"),
        "big",
    )
    assert request.arguments == {"amount": 500, "to": MappingProxyType({"ibans": (SECRET,)})}


async def test_nothing_in_a_request_can_be_changed() -> None:
    class Forging(Approving):
        async def approve(self, request: ToolApprovalRequest) -> ToolApprovalDecision:
            arguments: Any = request.arguments
            with pytest.raises(AttributeError):
                arguments.update(amount=1)
            with pytest.raises(AttributeError):
                arguments["to"].update(ibans=[])
            with pytest.raises(AttributeError):
                arguments["to"]["ibans"].append("mine")
            return await super().approve(request)

    assert not (await decide(NEEDED, Forging(), to={"ibans": [SECRET]})).is_error


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ToolApprovalDecision(approved=False, reason="ask the boss"), "ask the boss"),
        (ToolApprovalDecision(approved=False), "it is a lot"),
        (ValueError(SECRET), "tool approval failed"),
        (SystemExit(SECRET), "tool approval failed"),
        (asyncio.CancelledError(), "tool approval failed"),
        (None, "tool approver returned an invalid decision"),
        (True, "tool approver returned an invalid decision"),
    ],
)
async def test_a_call_that_is_not_approved_is_rejected(answer: Any, reason: str) -> None:
    told = rejection(await decide(NEEDED, Approving(answer)))
    assert told == {"reason": reason, "rule_id": "big"}


async def test_a_denial_without_any_reason_has_one() -> None:
    policy = rules(default_action=ASK)
    denied = Approving(ToolApprovalDecision(approved=False))
    told = rejection(await decide(policy, denied))
    assert told == {"reason": "tool execution approval was denied"}


async def test_without_an_approver_nothing_is_approved() -> None:
    assert rejection(await decide(NEEDED)) == {
        "reason": "tool execution requires approval but no approver is configured",
        "rule_id": "big",
    }


async def test_an_approval_that_comes_too_late_is_none() -> None:
    told = rejection(await decide(NEEDED, Waiting(), approval_timeout_s=0.01))
    assert told == {"reason": "tool approval was not given within 0.01 s", "rule_id": "big"}


async def test_a_run_that_is_stopped_waits_for_no_approval() -> None:
    token, approver = CancellationToken(), Waiting()
    deciding = asyncio.create_task(decide(NEEDED, approver, token=token))
    await approver.asked.wait()
    token.cancel("user left")
    assert await deciding == ToolResult.cancelled("pay", "user left")


async def test_a_run_that_is_stopped_waits_for_no_policy() -> None:
    class Slow(Saying):
        async def evaluate(self, context: ToolCallContext) -> ToolPolicyDecision:
            asked.set()
            await asyncio.Event().wait()
            return await super().evaluate(context)

    token, asked = CancellationToken(), asyncio.Event()
    deciding = asyncio.create_task(decide(Slow(None), token=token))
    await asked.wait()
    token.cancel("user left")
    assert await deciding == ToolResult.cancelled("pay", "user left")


async def test_a_policy_lives_as_long_as_its_tools() -> None:
    class Living(Saying):
        async def startup(self) -> None:
            life.append("start")

        async def shutdown(self) -> None:
            life.append("stop")

    life: list[str] = []
    await decide(Living(ToolPolicyDecision(ALLOW)))
    assert life == ["start", "stop"]


def test_only_rules_without_conditions_and_approver_decide_at_once() -> None:
    waits = rules(ToolPolicyRule("r", ALLOW, when=lambda _: True))
    assert ToolPolicyMiddleware(NEEDED).immediate
    assert not ToolPolicyMiddleware(waits).immediate
    assert not ToolPolicyMiddleware(NEEDED, Approving()).immediate
    assert not ToolPolicyMiddleware(Saying(None)).immediate


NONSENSE: list[tuple[dict[str, Any], str]] = [
    ({"rule_id": ""}, "rule_id must be text"),
    ({"rule_id": None}, "rule_id must be text"),
    ({"action": "maybe"}, "no policy action is called 'maybe'"),
    ({"action": None}, "no policy action is called None"),
    ({"tool_names": "pay"}, "tool_names must be a set of names"),
    ({"tool_names": []}, "tool_names must be a set of names"),
    ({"tool_names": [1]}, "tool_names must be a set of names"),
    ({"tool_names": 1}, "tool_names must be a set of names"),
    ({"effects": frozenset()}, "effects must be a set of names"),
    ({"effects": {"harmless"}}, "no effect is called 'harmless'"),
    ({"when": True}, "when must be a function"),
    ({"max_calls_per_run": 0}, "must be an integer over 0"),
    ({"max_calls_per_run": True}, "must be an integer over 0"),
    ({"max_calls_per_run": 1.5}, "must be an integer over 0"),
    ({"max_calls_per_run": 1, "action": DENY}, "not for a rule that denies"),
    ({"reason": " "}, "reason must be text"),
]


@pytest.mark.parametrize(("options", "text"), NONSENSE)
def test_a_rule_that_cannot_be_meant_is_refused(options: dict[str, Any], text: str) -> None:
    fields: dict[str, Any] = {"rule_id": "r", "action": ALLOW, **options}
    with pytest.raises(InvalidInputError, match=text):
        ToolPolicyRule(**fields)


def test_two_rules_must_not_have_one_name() -> None:
    with pytest.raises(InvalidInputError, match="two policy rules are named 'r'"):
        rules(ToolPolicyRule("r", ALLOW), ToolPolicyRule("r", DENY))


def test_decisions_that_cannot_be_meant_are_refused() -> None:
    unsure: Any = "yes"
    with pytest.raises(InvalidInputError, match="no policy action is called 'yes'"):
        ToolPolicyDecision(unsure)
    with pytest.raises(InvalidInputError, match="reason must be text"):
        ToolPolicyDecision(ALLOW, "")
    with pytest.raises(InvalidInputError, match="approved must be True or False"):
        ToolApprovalDecision(approved=unsure)
    with pytest.raises(InvalidInputError, match="reason must be text"):
        ToolApprovalDecision(approved=True, reason="")


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan")])
def test_an_approval_has_some_time(timeout_s: float) -> None:
    with pytest.raises(InvalidInputError, match="approval_timeout_s must be a number over 0"):
        ToolPolicyMiddleware(NEEDED, approval_timeout_s=timeout_s)
