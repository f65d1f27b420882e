"""Tool calls that a run has permission for; the model is told of the others, and goes on."""

import inspect
import logging
from collections.abc import Awaitable, Iterable
from typing import Protocol

from msgspec import Struct

from runlane.journal.errors import InvalidInputError
from runlane.worker.control.cancellation import AgentCancelledError
from runlane.worker.tools.context import ToolCallContext
from runlane.worker.tools.effects import StepOutcome
from runlane.worker.tools.errors import ToolError
from runlane.worker.tools.middleware.asking import answer_of
from runlane.worker.tools.middleware.protocol import ToolMiddleware, ToolNext

logger = logging.getLogger(__name__)


class PermissionDecision(Struct, frozen=True):
    """Whether a call may be made.

    Attributes:
        allowed: Whether it may.
        reason: Why; the model reads it if not.

    Raises:
        InvalidInputError: `allowed` is neither True nor False.
    """

    allowed: bool
    reason: str | None = None

    def __post_init__(self) -> None:
        if type(self.allowed) is not bool:
            raise InvalidInputError(f"allowed must be True or False, not {self.allowed!r}")


class PermissionPolicy(Protocol):
    """Decides about each tool call; one object serves all runs of a worker side by side."""

    def authorize(
        self, context: ToolCallContext
    ) -> PermissionDecision | Awaitable[PermissionDecision]:
        """Say whether a call may be made. If this raises, or takes too long, it is not."""
        ...


class AllowAllPolicy:
    """Allows every call."""

    def authorize(self, context: ToolCallContext) -> PermissionDecision:
        """Allow it."""
        return PermissionDecision(allowed=True)


class DenyListPolicy:
    """Allows the calls of all tools but some.

    Args:
        denied: Their names; upper and lower case are the same.

    Raises:
        InvalidInputError: It is one text, in the place of several.
    """

    def __init__(self, denied: Iterable[str]) -> None:
        if isinstance(denied, str):
            raise InvalidInputError(f"denied must be a list of names, not the text {denied!r}")
        self._denied = frozenset(name.casefold() for name in denied)

    def authorize(self, context: ToolCallContext) -> PermissionDecision:
        """Allow it unless its tool is one of those."""
        if context.tool_name.casefold() in self._denied:
            return PermissionDecision(allowed=False, reason="the tool is on the deny list")
        return PermissionDecision(allowed=True)


class PermissionMiddleware(ToolMiddleware):
    """Makes calls that are permitted; another is an error that the model reads.

    Whatever goes wrong denies the call, but for a run that is told to stop.

    Args:
        policy: Decides.
    """

    def __init__(self, policy: PermissionPolicy) -> None:
        self._policy = policy
        self.immediate = not inspect.iscoroutinefunction(policy.authorize)

    async def __call__(self, context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        """Go on with the call.

        Raises:
            ToolError: It is not permitted.
            AgentCancelledError: The run was told to stop.
        """
        decision = await self._decision(context)
        if not decision.allowed:
            raise ToolError(f"permission denied: {decision.reason or 'the policy says so'}")
        return await call_next(context)

    async def _decision(self, context: ToolCallContext) -> PermissionDecision:
        context.cancellation.raise_if_cancelled()
        try:
            answer = self._policy.authorize(context)
            decision: object = answer
            if inspect.isawaitable(answer):
                decision = await answer_of(lambda: answer, context.cancellation)
        except AgentCancelledError:
            raise
        except Exception:
            logger.exception("the permission policy failed on %s", context.operation_key)
            return PermissionDecision(allowed=False, reason="the policy failed")
        if isinstance(decision, PermissionDecision):
            return decision
        kind = type(decision).__name__
        logger.error("the permission policy returned %s for %s", kind, context.operation_key)
        return PermissionDecision(allowed=False, reason="the policy gave no valid decision")
