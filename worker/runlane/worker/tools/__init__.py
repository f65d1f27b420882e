"""Tools: what an agent can do, and how a call is checked, run, bounded and reported."""

from runlane.worker.tools.context import ToolContext, ToolProgressReporter, ToolProgressUpdate
from runlane.worker.tools.decorator import FunctionTool, tool
from runlane.worker.tools.definition import ToolDefinition
from runlane.worker.tools.effects import StepOutcome, ToolControl, ToolEffect
from runlane.worker.tools.handlers import BaseHandler, FunctionToolHandler, MethodToolHandler
from runlane.worker.tools.results import ToolResult
from runlane.worker.tools.runtime import PreparedCall, ToolFailure, ToolRuntime
from runlane.worker.tools.validation import ArgumentError

__all__ = [
    "ArgumentError",
    "BaseHandler",
    "FunctionTool",
    "FunctionToolHandler",
    "MethodToolHandler",
    "PreparedCall",
    "StepOutcome",
    "ToolContext",
    "ToolControl",
    "ToolDefinition",
    "ToolEffect",
    "ToolFailure",
    "ToolProgressReporter",
    "ToolProgressUpdate",
    "ToolResult",
    "ToolRuntime",
    "tool",
]
