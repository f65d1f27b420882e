"""What a model is to the loop, and the adapters that make providers look like it."""

from runlane.worker.models.adapters.openai_chat import OpenAIModelAdapter
from runlane.worker.models.config import ModelConfig
from runlane.worker.models.faults import ModelErrorKind, ModelProviderError
from runlane.worker.models.protocol import (
    ModelAdapter,
    ModelContext,
    ModelResponseCompleted,
    ModelStreamEvent,
    ModelTextDelta,
    ModelThinkingDelta,
    ToolSchema,
)
from runlane.worker.models.receive import receive

__all__ = [
    "ModelAdapter",
    "ModelConfig",
    "ModelContext",
    "ModelErrorKind",
    "ModelProviderError",
    "ModelResponseCompleted",
    "ModelStreamEvent",
    "ModelTextDelta",
    "ModelThinkingDelta",
    "OpenAIModelAdapter",
    "ToolSchema",
    "receive",
]
