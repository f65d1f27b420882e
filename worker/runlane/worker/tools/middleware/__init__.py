"""Middlewares: what each tool call of an agent goes through."""

from runlane.worker.tools.middleware.approval import (
    ToolApprovalDecision,
    ToolApprovalRequest,
    ToolApprover,
)
from runlane.worker.tools.middleware.decision import (
    ToolExecutionPolicy,
    ToolPolicyAction,
    ToolPolicyDecision,
)
from runlane.worker.tools.middleware.permissions import (
    AllowAllPolicy,
    DenyListPolicy,
    PermissionDecision,
    PermissionMiddleware,
    PermissionPolicy,
)
from runlane.worker.tools.middleware.policy import ToolPolicyMiddleware
from runlane.worker.tools.middleware.protocol import ToolMiddleware, ToolNext
from runlane.worker.tools.middleware.rules import RuleBasedToolPolicy, ToolPolicyRule
from runlane.worker.tools.middleware.schema_validation import (
    ToolSchemaConfigurationError,
    ToolSchemaValidationMiddleware,
)

__all__ = [
    "AllowAllPolicy",
    "DenyListPolicy",
    "PermissionDecision",
    "PermissionMiddleware",
    "PermissionPolicy",
    "RuleBasedToolPolicy",
    "ToolApprovalDecision",
    "ToolApprovalRequest",
    "ToolApprover",
    "ToolExecutionPolicy",
    "ToolMiddleware",
    "ToolNext",
    "ToolPolicyAction",
    "ToolPolicyDecision",
    "ToolPolicyMiddleware",
    "ToolPolicyRule",
    "ToolSchemaConfigurationError",
    "ToolSchemaValidationMiddleware",
]
