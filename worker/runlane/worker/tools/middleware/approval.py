"""Somebody is asked whether a tool call may be made."""

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import force_setattr

from runlane.journal.errors import InvalidInputError
from runlane.worker.tools.definition import frozen
from runlane.worker.tools.middleware.decision import check_text


class ToolApprovalRequest(Struct, frozen=True, kw_only=True):
    """The call that somebody is asked about.

    Attributes:
        tool_name: The tool.
        arguments: What it is to be called with: a copy in which nothing can be changed.
        tool_call_id: The provider's id of the call; providers repeat it.
        operation_key: `<run_id>:<turn>:<index>`, the same if a crash has the call asked for again.
        reason: Why it needs an approval, if the policy says so.
        rule_id: The rule that wants it, if it is one.
    """

    tool_name: str
    arguments: Mapping[str, Any]
    tool_call_id: str
    operation_key: str
    reason: str | None = None
    rule_id: str | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "arguments", frozen(self.arguments))


class ToolApprovalDecision(Struct, frozen=True):
    """What somebody says about a call.

    Attributes:
        approved: Whether it may be made.
        reason: Why; the model reads it if not.

    Raises:
        InvalidInputError: `approved` is neither True nor False, or the reason is empty.
    """

    approved: bool
    reason: str | None = None

    def __post_init__(self) -> None:
        if type(self.approved) is not bool:
            raise InvalidInputError(f"approved must be True or False, not {self.approved!r}")
        if self.reason is not None:
            check_text("reason", self.reason)


class ToolApprover(Protocol):
    """Who is asked; one object serves all runs of a worker side by side."""

    async def approve(self, request: ToolApprovalRequest) -> ToolApprovalDecision:
        """Say whether a call may be made. If this raises, or takes too long, it is not."""
        ...
