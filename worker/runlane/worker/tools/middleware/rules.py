"""A policy of rules: the first one that matches a call decides about it."""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import force_setattr

from runlane.journal.errors import InvalidInputError
from runlane.worker.tools.context import ToolCallContext
from runlane.worker.tools.effects import ToolEffect
from runlane.worker.tools.middleware.decision import (
    ToolExecutionPolicy,
    ToolPolicyAction,
    ToolPolicyDecision,
    check_text,
    known_action,
)

ToolPolicyPredicate: TypeAlias = Callable[[ToolCallContext], bool | Awaitable[bool]]


class ToolPolicyRule(Struct, frozen=True):
    """Which calls are meant, and what becomes of them; what is None selects nothing.

    Attributes:
        rule_id: Its name; the model reads it if a call is not made.
        action: What becomes of a call that it matches.
        tool_names: It matches calls of these tools.
        effects: It matches calls of tools with these effects.
        when: It matches calls for which this returns True.
        max_calls_per_run: So many calls of one run it lets through, over crashes; a call counts
            though its approval is then denied.
        reason: Why.

    Raises:
        InvalidInputError: A field is not of its type or empty, or a rule that denies has a limit.
    """

    rule_id: str
    action: ToolPolicyAction
    tool_names: frozenset[str] | None = None
    effects: frozenset[ToolEffect] | None = None
    when: ToolPolicyPredicate | None = None
    max_calls_per_run: int | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        check_text("rule_id", self.rule_id)
        if self.reason is not None:
            check_text("reason", self.reason)
        force_setattr(self, "action", known_action(self.action))
        for name in ("tool_names", "effects"):
            if (members := getattr(self, name)) is not None:
                force_setattr(self, name, self._names(name, members))
        if unknown := (self.effects or frozenset()) - frozenset(ToolEffect):
            raise InvalidInputError(f"rule {self.rule_id!r}: no effect is called {min(unknown)!r}")
        if self.when is not None and not callable(self.when):
            raise InvalidInputError(f"rule {self.rule_id!r}: when must be a function")
        self._check_limit(self.max_calls_per_run)

    async def matches(self, context: ToolCallContext) -> bool:
        """Return whether a call is meant.

        Raises:
            TypeError: `when` returned something else than True or False.
            Exception: Whatever `when` raises.
        """
        if self.tool_names is not None and context.tool_name not in self.tool_names:
            return False
        if self.effects is not None and context.tool_definition.effect not in self.effects:
            return False
        if self.when is None:
            return True
        matched: Any = self.when(context)
        if inspect.isawaitable(matched):
            matched = await matched
        if not isinstance(matched, bool):
            raise TypeError(f"rule {self.rule_id!r}: when returned {type(matched).__name__}")
        return matched

    def _names(self, field: str, members: object) -> frozenset[str]:
        if isinstance(members, Iterable) and not isinstance(members, str):
            names = frozenset(cast("Iterable[object]", members))
            if names and all(isinstance(each, str) and each for each in names):
                return cast("frozenset[str]", names)
        raise InvalidInputError(
            f"rule {self.rule_id!r}: {field} must be a set of names, not {members!r}"
        )

    def _check_limit(self, limit: object) -> None:
        if limit is None:
            return
        if type(limit) is not int or limit < 1:
            raise InvalidInputError(
                f"rule {self.rule_id!r}: max_calls_per_run must be an integer over 0, not {limit!r}"
            )
        if self.action is ToolPolicyAction.DENY:
            raise InvalidInputError(
                f"rule {self.rule_id!r}: max_calls_per_run is not for a rule that denies"
            )


class RuleBasedToolPolicy(ToolExecutionPolicy):
    """Lets the first rule that matches a call decide about it.

    Args:
        rules: In the order in which they are asked.
        default_action: What becomes of a call that no rule matches.
        default_reason: Why, for these.

    Raises:
        InvalidInputError: Two rules have one name, or there is no such action.
    """

    def __init__(
        self,
        rules: Iterable[ToolPolicyRule],
        *,
        default_action: ToolPolicyAction = ToolPolicyAction.DENY,
        default_reason: str | None = None,
    ) -> None:
        self._rules = tuple(rules)
        self._default = ToolPolicyDecision(default_action, default_reason)
        self.immediate = all(rule.when is None for rule in self._rules)
        names = [rule.rule_id for rule in self._rules]
        for name in names:
            if names.count(name) > 1:
                raise InvalidInputError(f"two policy rules are named {name!r}")

    async def evaluate(self, context: ToolCallContext) -> ToolPolicyDecision:
        """Return what the first rule says that matches; a call over its limit is denied.

        Raises:
            Exception: What a rule's `when` raises.
        """
        for rule in self._rules:
            if await rule.matches(context):
                return _decision(rule, context)
        return self._default


def _decision(rule: ToolPolicyRule, context: ToolCallContext) -> ToolPolicyDecision:
    limit = rule.max_calls_per_run
    if limit is not None and context.count(f"policy:{rule.rule_id}") > limit:
        reached = f"tool call limit reached for policy rule {rule.rule_id!r}"
        return ToolPolicyDecision(ToolPolicyAction.DENY, reached, rule.rule_id)
    return ToolPolicyDecision(rule.action, rule.reason, rule.rule_id)
