"""Which model an OpenAI-compatible adapter speaks to, from the environment and `.env`."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from runlane.journal.errors import InvalidInputError
from runlane.journal.settings import variables

VARIABLE_OF: Final = MappingProxyType(
    {
        "model": "CHAT_MODEL",
        "api_key": "MODEL_API_KEY",
        "base_url": "MODEL_URL",
        "timeout_s": "LLM_TIMEOUT",
        "temperature": "LLM_TEMPERATURE",
        "include_usage": "LLM_INCLUDE_USAGE",
    }
)
_REQUIRED: Final = ("model", "api_key", "base_url")


class ModelConfig(Struct, frozen=True, kw_only=True):
    """One model and the way to it. No repr shows the key.

    Attributes:
        model: The provider's id of the model.
        api_key: Sent as bearer token; printable ASCII.
        base_url: Where `/chat/completions` lies: http or https, without credentials in it.
        timeout_s: How long to wait for the connection and for each further byte, in seconds.
        temperature: Sampling temperature.
        include_usage: Whether to ask for token counts; some servers refuse the question.
    """

    model: str
    api_key: str
    base_url: str
    timeout_s: Annotated[int, Meta(ge=1, le=86_400)] = 60
    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.7
    include_usage: bool = True

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\x21-\x7e]+", self.api_key):
            raise InvalidInputError(
                f"{VARIABLE_OF['api_key']} is not printable ASCII without spaces"
            )
        _check_url(self.base_url)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> "ModelConfig":
        """Return the configuration that the variables of `VARIABLE_OF` give.

        Args:
            environ: The variables; None takes the environment and, for what is not set there,
                `.env` of the working directory. An empty variable counts as unset.

        Raises:
            InvalidInputError: A variable is missing or out of range; the message names it.
        """
        values = _values(environ)
        if missing := [VARIABLE_OF[name] for name in _REQUIRED if name not in values]:
            raise InvalidInputError(
                f"not set: {', '.join(missing)}. "
                f"A model needs {', '.join(VARIABLE_OF[name] for name in _REQUIRED)} together"
            )
        try:
            return msgspec.convert(values, cls, strict=False)
        except msgspec.ValidationError as error:
            if isinstance(error.__cause__, InvalidInputError):
                raise error.__cause__ from None
            text, _, path = str(error).partition(" - at `$.")
            raise InvalidInputError(f"{VARIABLE_OF[path.rstrip('`')]}: {text}") from None

    @staticmethod
    def present(environ: Mapping[str, str] | None = None) -> bool:
        """Return whether any variable is set that `from_env` requires."""
        return any(name in _values(environ) for name in _REQUIRED)

    @property
    def label(self) -> str:
        """The model and its host and port, for messages."""
        return f"model {self.model} at {urlsplit(self.base_url).netloc}"

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return what rich and `repr` may show."""
        return [
            (name, "***" if name == "api_key" else getattr(self, name))
            for name in self.__struct_fields__
        ]


def _check_url(text: str) -> None:
    variable = VARIABLE_OF["base_url"]
    try:
        url = urlsplit(text)
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    else:
        if "@" in url.netloc:
            raise InvalidInputError(
                f"{variable} holds credentials; put the key into {VARIABLE_OF['api_key']}"
            )
    if not usable:
        raise InvalidInputError(f"{variable} is not an http or https URL")


def _values(environ: Mapping[str, str] | None) -> dict[str, str]:
    source = variables(environ)
    return {
        name: value for name, variable in VARIABLE_OF.items() if (value := source.get(variable))
    }
