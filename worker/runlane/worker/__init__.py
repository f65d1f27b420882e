"""Execute runs: claim, check out, loop over model and tools, journal, hand on."""

from runlane.worker.app import Agent, App, AppLoadError, load_app
from runlane.worker.control import AgentCancelledError, CancellationToken
from runlane.worker.models import (
    ModelAdapter,
    ModelConfig,
    ModelContext,
    ModelErrorKind,
    ModelProviderError,
    ModelResponseCompleted,
    ModelTextDelta,
    ModelThinkingDelta,
    OpenAIModelAdapter,
)
from runlane.worker.policy import RecoveryPolicy, RuntimePolicy
from runlane.worker.runner.worker import RunlaneWorker
from runlane.worker.tools import (
    BaseHandler,
    FunctionTool,
    MethodToolHandler,
    StepOutcome,
    ToolContext,
    ToolControl,
    ToolDefinition,
    ToolEffect,
    ToolProgressReporter,
    tool,
)

__all__ = [
    "Agent",
    "AgentCancelledError",
    "App",
    "AppLoadError",
    "BaseHandler",
    "CancellationToken",
    "FunctionTool",
    "MethodToolHandler",
    "ModelAdapter",
    "ModelConfig",
    "ModelContext",
    "ModelErrorKind",
    "ModelProviderError",
    "ModelResponseCompleted",
    "ModelTextDelta",
    "ModelThinkingDelta",
    "OpenAIModelAdapter",
    "RecoveryPolicy",
    "RunlaneWorker",
    "RuntimePolicy",
    "StepOutcome",
    "ToolContext",
    "ToolControl",
    "ToolDefinition",
    "ToolEffect",
    "ToolProgressReporter",
    "load_app",
    "tool",
]
