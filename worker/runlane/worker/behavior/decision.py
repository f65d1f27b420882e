"""What a hook decides."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import NoneType
from typing import Any, Final, Self

from msgspec import Struct
from msgspec.structs import force_setattr

from runlane.journal.errors import InvalidInputError
from runlane.journal.wire.messages import ContextMessage
from runlane.worker.behavior.arguments import plain
from runlane.worker.tools.texts import storable


class BehaviorAction(StrEnum):
    """Whether the run goes on."""

    CONTINUE = "continue"
    STOP = "stop"


class BehaviorDecision(Struct, frozen=True, kw_only=True):
    """What a hook wants to be different; what is left out stays as it is.

    It keeps copies of what it is made of, which any journal can store.

    Attributes:
        action: STOP completes the run, as `behavior_stop`.
        output: The output of a run that stops; None for the text of the model's last response.
        reason: Why, of a decision that stops or denies: the model reads it of a call that is not
            made.
        denied: Before a tool: the call is not made. After it: its result counts as an error.
        arguments: Before a tool: what it is called with instead.
        messages: Before a model request: what the model reads instead, in this request only.
        prefix: After a tool: what the model reads in front of the result.
        steer: Messages to the model. Calls of the response that were not made yet are skipped.

    Raises:
        InvalidInputError: A value is not of its type, a text to the model is empty, or there is
            an output without a stop, or a reason for nothing.
    """

    action: BehaviorAction = BehaviorAction.CONTINUE
    output: str | None = None
    reason: str | None = None
    denied: bool = False
    arguments: Mapping[str, Any] | None = None
    messages: Sequence[ContextMessage] | None = None
    prefix: str | None = None
    steer: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_types()
        if self.output is not None and not self.stops:
            raise InvalidInputError("a decision has an output only if it stops the run")
        if self.reason is not None and not (self.stops or self.denied):
            raise InvalidInputError("a decision has a reason only if it stops or denies something")
        for name in ("output", "reason", "prefix"):
            text = getattr(self, name)
            if text is not None:
                force_setattr(self, name, storable(text))
        force_setattr(self, "steer", tuple(map(storable, self.steer)))
        if self.arguments is not None:
            force_setattr(self, "arguments", plain(self.arguments))
        if self.messages is not None:
            force_setattr(self, "messages", tuple(self.messages))

    @property
    def stops(self) -> bool:
        """Whether the run ends."""
        return self.action is BehaviorAction.STOP

    @property
    def given(self) -> frozenset[str]:
        """The names of the fields that say something."""
        defaults = zip(self.__struct_fields__, self.__struct_defaults__, strict=True)
        return frozenset(name for name, default in defaults if getattr(self, name) != default)

    @classmethod
    def proceed(cls) -> Self:
        """Leave everything as it is."""
        return cls()

    @classmethod
    def stop(cls, output: str | None = None, *, reason: str | None = None) -> Self:
        """End the run, as completed."""
        return cls(action=BehaviorAction.STOP, output=output, reason=reason)

    @classmethod
    def deny(cls, reason: str) -> Self:
        """Do not make the call; or call the result an error."""
        return cls(denied=True, reason=reason)

    @classmethod
    def replace_arguments(cls, arguments: Mapping[str, Any]) -> Self:
        """Call the tool with something else."""
        return cls(arguments=arguments)

    @classmethod
    def replace_messages(cls, messages: Sequence[ContextMessage]) -> Self:
        """Let the model read something else, in this request only."""
        return cls(messages=messages)

    @classmethod
    def prefix_output(cls, text: str) -> Self:
        """Say something in front of a tool's result."""
        return cls(prefix=text)

    @classmethod
    def steer_with(cls, *texts: str) -> Self:
        """Say something to the model before anything else is done.

        Raises:
            InvalidInputError: There is no text, or an empty one.
        """
        if not texts:
            raise InvalidInputError("a decision that steers needs a text")
        return cls(steer=texts)

    def _check_types(self) -> None:
        for name, types in FIELD_TYPES.items():
            value = getattr(self, name)
            if not isinstance(value, types):
                wanted = " or ".join(
                    "None" if each is NoneType else each.__name__ for each in types
                )
                raise InvalidInputError(
                    f"a decision's {name} is of type {type(value).__name__}, not {wanted}"
                )
        if not all(map(_is_text, self.steer)):
            raise InvalidInputError("a decision steers with texts that are not empty")


FIELD_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "action": (BehaviorAction,),
    "output": (str, NoneType),
    "reason": (str, NoneType),
    "denied": (bool,),
    "arguments": (Mapping, NoneType),
    "messages": (Sequence, NoneType),
    "prefix": (str, NoneType),
    "steer": (tuple,),
}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
