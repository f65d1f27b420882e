"""Load a script together with the contract that its header states."""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from msgspec import Struct

_HEADER: Final = re.compile(r"\A--\[\[ (?P<name>\w+)\n(?P<body>.*?)\n\]\]\n", re.DOTALL)
_ARG: Final = re.compile(r"^ARGV\[(\d+)(\.\.\.)?\] ", re.MULTILINE)
_CODE: Final = re.compile(r"^  ([A-Z_]+) +\S", re.MULTILINE)
_INCLUDE: Final = re.compile(r"^--- @include (\w+)\n", re.MULTILINE)


class Script(Struct, frozen=True):
    """A Lua script and what its header promises.

    Attributes:
        name: The transition.
        source: The text that the server runs, with its includes.
        body: The text after the header, without includes.
        sha: Name of the source for EVALSHA (SHA-1, as the server computes it).
        arg_count_min: At least this many ARGV.
        codes: The first words that a reply may begin with.
    """

    name: str
    source: str
    body: str
    sha: str
    arg_count_min: int
    codes: frozenset[str]


@cache
def load(name: str) -> Script:
    """Return the script stored as `<name>.lua` beside this module.

    Raises:
        ValueError: It has no header, or the header numbers its ARGV with a gap.
    """
    text = (files("runlane.journal.lua") / f"{name}.lua").read_text("utf-8")
    header = _HEADER.match(text)
    if header is None or header["name"] != name:
        raise ValueError(f"{name}.lua does not open with '--[[ {name}'")
    numbers = [int(number) for number, _ in _ARG.findall(header["body"])]
    if numbers != list(range(1, len(numbers) + 1)):
        raise ValueError(f"{name}.lua: ARGV are numbered {numbers}")
    body = text[header.end() :]
    source = _INCLUDE.sub(lambda found: _includes()[found[1]], body)
    return Script(
        name=name,
        source=source,
        body=body,
        sha=hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest(),
        arg_count_min=len(numbers),
        codes=frozenset(_CODE.findall(header["body"])),
    )


@cache
def _includes() -> Mapping[str, str]:
    folder = files("runlane.journal.lua") / "include"
    return {
        path.name.removesuffix(".lua"): path.read_text("utf-8")
        for path in folder.iterdir()
        if path.name.endswith(".lua")
    }
