"""OpenAI chat completions, as OpenAI and the many servers that follow it speak them."""

from runlane.worker.models.adapters.openai_chat.adapter import OpenAIModelAdapter

__all__ = ["OpenAIModelAdapter"]
