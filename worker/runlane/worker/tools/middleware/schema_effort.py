"""A JSON Schema validator that does not go on for ever, whatever it is to check."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias, cast

from jsonschema import validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from runlane.journal.errors import RunlaneError

EFFORT_MAX: Final = 50_000
"""Keywords that are looked at for one call: a schema that branches can ask for any number."""

Keyword: TypeAlias = Callable[[Validator, Any, Any, Any], Iterable[ValidationError] | None]


class TooMuchEffortError(RunlaneError):
    """A check has taken as long as it may."""


class Effort:
    """What one check may take, and then the next one."""

    def __init__(self) -> None:
        self._left = EFFORT_MAX
        self._kinds: dict[type[Validator], type[Validator]] = {}

    def renew(self) -> None:
        """Begin another check."""
        self._left = EFFORT_MAX

    def limited(self, kind: type[Validator]) -> type[Validator]:
        """Return a class of validators like `kind` that raise a `TooMuchEffortError` in time."""
        if kind not in self._kinds:
            keywords: dict[str, Keyword] = cast("Any", kind).VALIDATORS
            keywords = keywords | {"uniqueItems": _unique_items}
            own = {name: self._spending(keyword) for name, keyword in keywords.items()}
            extend: Callable[..., type[Validator]] = cast("Any", validators).extend
            self._kinds[kind] = extend(kind, own)
        return self._kinds[kind]

    def _spending(self, keyword: Keyword) -> Keyword:
        def check(
            validator: Validator, value: Any, instance: Any, schema: Any
        ) -> Iterable[ValidationError] | None:
            self._left -= 1
            if self._left < 0:
                raise TooMuchEffortError("a check has taken as long as it may")
            return keyword(validator, value, instance, schema)

        return check


def _unique_items(
    validator: Validator, unique: Any, instance: Any, _: Any
) -> Iterable[ValidationError]:
    """Check it in linear time; jsonschema compares each object with each other one."""
    if not (unique and validator.is_type(instance, "array")):
        return
    if len(set(map(_comparable, instance))) < len(instance):
        yield ValidationError("items are not unique")


def _comparable(value: Any) -> Any:
    """Return what equals that of another JSON value if the two are equal, and can be hashed."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return frozenset([(name, _comparable(member)) for name, member in members.items()])
    if isinstance(value, list):
        return tuple(map(_comparable, cast("list[object]", value)))
    return isinstance(value, bool), value
