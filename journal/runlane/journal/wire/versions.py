"""Stored types by version: which one is written now, and the way up from the older ones.

Version 1 of a type is stored under its name, a later one under `<name>@<version>`. Version n + 1
exists once an upgrade from version n is listed here. Added fields that have a default need none.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from runlane.journal.errors import UndecodableError

T = TypeVar("T", bound=Struct)
T_co = TypeVar("T_co", covariant=True)

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
"""Makes plain data of the next version from plain data of an older one; pure."""
Upgrades = Mapping[str, Sequence[Upgrade]]
"""Name of a type → its upgrades, from version 1 on; a type that is missing has version 1."""

RECORD_UPGRADES: Final[Upgrades] = MappingProxyType({})
JOB_UPGRADES: Final[Upgrades] = MappingProxyType({})
JUMP_UPGRADES: Final[Upgrades] = MappingProxyType({})


class Decodes(Protocol[T_co]):
    """What makes a value of bytes, or raises `msgspec.MsgspecError`."""

    def decode(self, data: bytes, /) -> T_co:
        """Return the value."""
        ...


def plain_name(stored: str) -> str:
    """Return the name of a type without the version that it is stored as."""
    return stored.partition("@")[0]


def stored_name(name: str, version: int) -> str:
    """Return what a version of a type is stored under."""
    return name if version == 1 else f"{name}@{version}"


class Versions(Generic[T]):
    """Types by the names that they are stored under.

    Args:
        what: What they are, for error texts.
        types: Name → type as of its current version.
        upgrades: How older versions of them are read.
    """

    def __init__(self, what: str, types: Mapping[str, type[T]], upgrades: Upgrades) -> None:
        self._what = what
        self._current: dict[type[T], str] = {}
        self._decoders: dict[str, Decodes[T]] = {}
        for name, type_ in types.items():
            steps = upgrades.get(name, ())
            for done in range(len(steps)):
                older = stored_name(name, done + 1)
                self._decoders[older] = _OlderDecoder(older, type_, steps[done:])
            self._current[type_] = stored_name(name, len(steps) + 1)
            self._decoders[self._current[type_]] = msgspec.msgpack.Decoder(type_)

    def stored_name(self, type_: type[T]) -> str:
        """Return what the current version of a type is stored under."""
        return self._current[type_]

    def decoder(self, stored: str) -> Decodes[T]:
        """Return what reads the bytes that are stored under a name.

        Raises:
            UndecodableError: No such type is known, or not in that version.
        """
        decoder = self._decoders.get(stored)
        if decoder is None:
            raise UndecodableError(
                f"unknown {self._what} {stored!r}; a newer runlane may have written it: "
                "upgrade this process"
            )
        return decoder


class TaggedDecoder(Generic[T]):
    """Reads types that say in their bytes what they are stored as: the field `type`, their tag."""

    def __init__(self, current: msgspec.msgpack.Decoder[T], versions: Versions[T]) -> None:
        self._current = current
        self._versions = versions

    def decode(self, data: bytes, /) -> T:
        """Return the value.

        Raises:
            UndecodableError: It is of no known type or version.
            msgspec.MsgspecError: The bytes are damaged.
        """
        try:
            return self._current.decode(data)
        except msgspec.ValidationError:
            return self._versions.decoder(_tag.decode(data).type).decode(data)


class _Tag(Struct):
    type: str


_tag: Final = msgspec.msgpack.Decoder(_Tag)
_plain: Final = msgspec.msgpack.Decoder(dict[str, Any])


class _OlderDecoder(Generic[T]):
    """Reads an older version of a type."""

    def __init__(self, stored: str, type_: type[T], upgrades: Sequence[Upgrade]) -> None:
        self._stored = stored
        self._type = type_
        self._upgrades = upgrades

    def decode(self, data: bytes, /) -> T:
        plain = _plain.decode(data)
        if tag_field := self._type.__struct_config__.tag_field:
            plain.pop(tag_field, None)  # it names the older version
        try:
            for upgrade in self._upgrades:
                plain = upgrade(plain)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise UndecodableError(f"{self._stored} is damaged: {error!r}") from error
        return msgspec.convert(plain, self._type)
