"""Tool calls that an application's policy allows, or somebody whom it has asked; no others."""

import logging

from runlane.journal.errors import InvalidInputError
from runlane.worker.control.cancellation import AgentCancelledError
from runlane.worker.tools.context import ToolCallContext
from runlane.worker.tools.effects import StepOutcome, ToolControl
from runlane.worker.tools.middleware.approval import (
    ToolApprovalDecision,
    ToolApprovalRequest,
    ToolApprover,
)
from runlane.worker.tools.middleware.asking import answer_of
from runlane.worker.tools.middleware.decision import (
    ToolExecutionPolicy,
    ToolPolicyAction,
    ToolPolicyDecision,
)
from runlane.worker.tools.middleware.protocol import ToolMiddleware, ToolNext

logger = logging.getLogger(__name__)


class ToolPolicyMiddleware(ToolMiddleware):
    """Makes calls that the policy allows; any other is rejected, and ends the run.

    Whatever goes wrong rejects the call, but for a run that is told to stop. What stands after it
    in the chain may still change the arguments: put it behind all that does.

    Args:
        policy: Decides.
        approver: Who is asked where the policy requires approval. While they think, the run keeps
            its place on the worker; a crash has them asked again.
        approval_timeout_s: Seconds that they have.

    Raises:
        InvalidInputError: `approval_timeout_s` is not over 0.
    """

    def __init__(
        self,
        policy: ToolExecutionPolicy,
        approver: ToolApprover | None = None,
        approval_timeout_s: float = 300.0,
    ) -> None:
        if not approval_timeout_s > 0:
            raise InvalidInputError(
                f"approval_timeout_s must be a number over 0, not {approval_timeout_s!r}"
            )
        self._policy = policy
        self._approver = approver
        self._approval_timeout_s = approval_timeout_s
        self.immediate = approver is None and policy.immediate

    async def startup(self) -> None:
        """Start the policy."""
        await self._policy.startup()

    async def shutdown(self) -> None:
        """Stop the policy."""
        await self._policy.shutdown()

    async def __call__(self, context: ToolCallContext, call_next: ToolNext) -> StepOutcome:
        """Go on with the call, or reject it.

        Raises:
            AgentCancelledError: The run was told to stop.
        """
        decision = await self._decision(context)
        if decision.action is ToolPolicyAction.REQUIRE_APPROVAL:
            decision = await self._approval(context, decision)
        if decision.action is ToolPolicyAction.ALLOW:
            return await call_next(context)
        return _rejected(context, decision)

    async def _decision(self, context: ToolCallContext) -> ToolPolicyDecision:
        try:
            decision: object = await self._evaluated(context)
        except AgentCancelledError:
            raise
        except Exception:
            logger.exception("the policy failed on %s", context.operation_key)
            return _denied("tool policy evaluation failed")
        if isinstance(decision, ToolPolicyDecision):
            return decision
        kind = type(decision).__name__
        logger.error("the policy returned %s for %s", kind, context.operation_key)
        return _denied("tool policy returned an invalid decision")

    async def _evaluated(self, context: ToolCallContext) -> object:
        if self._policy.immediate:
            return await self._policy.evaluate(context)
        return await answer_of(lambda: self._policy.evaluate(context), context.cancellation)

    async def _approval(
        self, context: ToolCallContext, decision: ToolPolicyDecision
    ) -> ToolPolicyDecision:
        """Return what the approver makes of a decision that requires approval."""
        rule_id = decision.rule_id
        if self._approver is None:
            missing = "tool execution requires approval but no approver is configured"
            return _denied(missing, rule_id)
        try:
            approval: object = await self._asked(self._approver, context, decision)
        except AgentCancelledError:
            raise
        except TimeoutError:
            late = f"tool approval was not given within {self._approval_timeout_s} s"
            return _denied(late, rule_id)
        except Exception:
            logger.exception("the approver failed on %s", context.operation_key)
            return _denied("tool approval failed", rule_id)
        if not isinstance(approval, ToolApprovalDecision):
            kind = type(approval).__name__
            logger.error("the approver returned %s for %s", kind, context.operation_key)
            return _denied("tool approver returned an invalid decision", rule_id)
        if approval.approved:
            return ToolPolicyDecision(ToolPolicyAction.ALLOW, approval.reason, rule_id)
        reason = approval.reason or decision.reason or "tool execution approval was denied"
        return _denied(reason, rule_id)

    async def _asked(
        self, approver: ToolApprover, context: ToolCallContext, decision: ToolPolicyDecision
    ) -> object:
        request = ToolApprovalRequest(
            tool_name=context.tool_name,
            arguments=context.arguments,
            tool_call_id=context.tool_call_id,
            operation_key=context.operation_key,
            reason=decision.reason,
            rule_id=decision.rule_id,
        )
        return await answer_of(
            lambda: approver.approve(request), context.cancellation, self._approval_timeout_s
        )


def _denied(reason: str, rule_id: str | None = None) -> ToolPolicyDecision:
    return ToolPolicyDecision(ToolPolicyAction.DENY, reason, rule_id)


def _rejected(context: ToolCallContext, decision: ToolPolicyDecision) -> StepOutcome:
    data = {
        "status": "rejected",
        "tool": context.tool_name,
        "reason": decision.reason or "tool execution denied by policy",
    }
    if decision.rule_id is not None:
        data["rule_id"] = decision.rule_id
    return StepOutcome(data, ToolControl.REJECT)
