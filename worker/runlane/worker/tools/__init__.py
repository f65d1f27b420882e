"""Tools: what an agent can do, and how a call is checked, run, bounded and reported."""

from runlane.worker.tools.content import Attachment
from runlane.worker.tools.context import ToolCallContext, ToolProgressReporter, ToolProgressUpdate
from runlane.worker.tools.decorator import FunctionTool, tool
from runlane.worker.tools.definition import ToolDefinition
from runlane.worker.tools.effects import StepOutcome, ToolControl, ToolEffect
from runlane.worker.tools.errors import ToolError
from runlane.worker.tools.handlers import BaseHandler, FunctionToolHandler, MethodToolHandler
from runlane.worker.tools.middleware import (
    AllowAllPolicy,
    DenyListPolicy,
    PermissionDecision,
    PermissionMiddleware,
    PermissionPolicy,
    RuleBasedToolPolicy,
    ToolApprovalDecision,
    ToolApprovalRequest,
    ToolApprover,
    ToolExecutionPolicy,
    ToolMiddleware,
    ToolNext,
    ToolPolicyAction,
    ToolPolicyDecision,
    ToolPolicyMiddleware,
    ToolPolicyRule,
    ToolSchemaConfigurationError,
    ToolSchemaValidationMiddleware,
)
from runlane.worker.tools.prepared import PreparedCall, ToolFailure
from runlane.worker.tools.results import ToolResult, keep_content
from runlane.worker.tools.runtime import ToolRuntime
from runlane.worker.tools.validation import ArgumentError

__all__ = [
    "AllowAllPolicy",
    "ArgumentError",
    "Attachment",
    "BaseHandler",
    "DenyListPolicy",
    "FunctionTool",
    "FunctionToolHandler",
    "MethodToolHandler",
    "PermissionDecision",
    "PermissionMiddleware",
    "PermissionPolicy",
    "PreparedCall",
    "RuleBasedToolPolicy",
    "StepOutcome",
    "ToolApprovalDecision",
    "ToolApprovalRequest",
    "ToolApprover",
    "ToolCallContext",
    "ToolControl",
    "ToolDefinition",
    "ToolEffect",
    "ToolError",
    "ToolExecutionPolicy",
    "ToolFailure",
    "ToolMiddleware",
    "ToolNext",
    "ToolPolicyAction",
    "ToolPolicyDecision",
    "ToolPolicyMiddleware",
    "ToolPolicyRule",
    "ToolProgressReporter",
    "ToolProgressUpdate",
    "ToolResult",
    "ToolRuntime",
    "ToolSchemaConfigurationError",
    "ToolSchemaValidationMiddleware",
    "keep_content",
    "tool",
]
