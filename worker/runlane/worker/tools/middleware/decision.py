"""What an application's policy says about a tool call."""

from abc import ABC, abstractmethod
from enum import StrEnum
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import force_setattr

from runlane.journal.errors import InvalidInputError
from runlane.worker.tools.context import ToolCallContext
from runlane.worker.tools.middleware.protocol import refuse_task_start


class ToolPolicyAction(StrEnum):
    """What becomes of a call."""

    ALLOW = "allow"
    """It is made."""
    DENY = "deny"
    """It is not, and the run ends."""
    REQUIRE_APPROVAL = "require_approval"
    """Somebody is asked."""


class ToolPolicyDecision(Struct, frozen=True):
    """What a policy says about one call.

    Attributes:
        action: What becomes of it.
        reason: Why; the model reads it if the call is not made.
        rule_id: The rule that says so, if it is one.

    Raises:
        InvalidInputError: There is no such action, or a text is empty.
    """

    action: ToolPolicyAction
    reason: str | None = None
    rule_id: str | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "action", known_action(self.action))
        for name in ("reason", "rule_id"):
            if (text := getattr(self, name)) is not None:
                check_text(name, text)


class ToolExecutionPolicy(ABC):
    """Decides about each tool call; one object serves all runs of a worker side by side.

    Attributes:
        immediate: Whether it decides at once, without waiting for anything.

    Raises:
        InvalidInputError: It has an `on_task_start`, which nobody would call.
    """

    immediate: bool = False

    def __new__(cls, *_args: Any, **_options: Any) -> Self:
        """Refuse what would never be called."""
        refuse_task_start(cls)
        return super().__new__(cls)

    async def startup(self) -> None:  # noqa: B027  most policies have nothing to start
        """Get ready; called once, before any call."""

    async def shutdown(self) -> None:  # noqa: B027  nor to stop
        """Let go of what `startup` took; called once, after every call."""

    @abstractmethod
    async def evaluate(self, context: ToolCallContext) -> ToolPolicyDecision:
        """Return what becomes of a call. If this raises, or takes too long, it is not made."""


def known_action(action: str) -> ToolPolicyAction:
    """Return the action of that name.

    Raises:
        InvalidInputError: There is none.
    """
    if action not in list(ToolPolicyAction):
        known = ", ".join(ToolPolicyAction)
        raise InvalidInputError(f"no policy action is called {action!r}; use one of {known}")
    return ToolPolicyAction(action)


def check_text(name: str, text: object) -> None:
    """Refuse a text that says nothing.

    Raises:
        InvalidInputError: It is empty, or no text at all.
    """
    if not (isinstance(text, str) and text.strip()):
        raise InvalidInputError(f"{name} must be text that is not empty, not {text!r}")
