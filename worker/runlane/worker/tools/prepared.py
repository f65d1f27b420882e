"""A call before it is made: who answers it, and whether its arguments fit."""

from typing import Any

import msgspec
from msgspec import Struct

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.messages import ModelToolCall
from runlane.worker.tools.definition import ToolDefinition
from runlane.worker.tools.effects import ToolEffect
from runlane.worker.tools.handlers import BaseHandler
from runlane.worker.tools.middleware.chain import RefusedCallError
from runlane.worker.tools.results import ToolResult
from runlane.worker.tools.texts import json_text, storable
from runlane.worker.tools.validation import UnfitError


class PreparedCall(Struct, frozen=True):
    """A call that may be run.

    Attributes:
        call: As the model wrote it.
        definition: The tool.
        handler: Who answers.
        arguments: Parsed; they fit the tool.
        timeout_s: Seconds after which it is stopped; None for no limit.
    """

    call: ModelToolCall
    definition: ToolDefinition
    handler: BaseHandler
    arguments: dict[str, Any]
    timeout_s: float | None

    @property
    def effect(self) -> ToolEffect:
        """What a second call would do."""
        return self.definition.effect


class ToolFailure(Struct, frozen=True):
    """A call that must not be run, with the result that the model reads instead.

    Attributes:
        call: As the model wrote it.
        result: An error.
        effect: That of the tool; side-effecting for an unknown one.
    """

    call: ModelToolCall
    result: ToolResult
    effect: ToolEffect = ToolEffect.SIDE_EFFECTING


def parse_arguments(arguments: str) -> dict[str, Any]:
    """Read the arguments that a model has written; no text is no argument.

    Raises:
        InvalidInputError: They are no JSON object.
    """
    try:
        return msgspec.json.decode(arguments.strip() or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"the arguments are not a JSON object: {error}") from error


def checked(prepared: PreparedCall) -> PreparedCall | ToolFailure:
    """Return the call, if its arguments fit the tool."""
    try:
        _refuse_unfit(prepared, prepared.arguments)
    except UnfitError as unfit:
        result = ToolResult.invalid(prepared.call.name, unfit.errors)
        return ToolFailure(prepared.call, result, prepared.effect)
    return prepared


def _refuse_unfit(prepared: PreparedCall, arguments: dict[str, Any]) -> None:
    if errors := prepared.handler.argument_errors(prepared.definition.name, arguments):
        raise UnfitError(errors)


def final_arguments(prepared: PreparedCall, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what middlewares have made of the arguments, as a journal can keep it.

    Raises:
        UnfitError: They do not fit the tool.
        RefusedCallError: They are no JSON object.
    """
    try:
        text = json_text(arguments)
        if text != json_text(prepared.arguments):  # by text, since 1 == True
            arguments = parse_arguments(storable(text))
    except (InvalidInputError, TypeError, ValueError, RecursionError) as error:
        raise RefusedCallError("a middleware made no JSON object of the arguments") from error
    _refuse_unfit(prepared, arguments)
    return arguments
