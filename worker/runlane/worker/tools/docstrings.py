"""What a function's docstring says, for the model to read."""

import inspect
import re
from typing import Final

from msgspec import Struct

ARGUMENT: Final = re.compile(r"\*{0,2}(?P<name>\w+)(?: \([^)]*\))?:\s*(?P<text>.*)")


class DocumentedFunction(Struct, frozen=True):
    """The parts of a Google-style docstring that describe a tool.

    Attributes:
        description: The first paragraph on one line; None without a docstring.
        arguments: What the `Args:` section says of each parameter, each on one line.
    """

    description: str | None
    arguments: dict[str, str]


def read_docstring(text: str | None) -> DocumentedFunction:
    """Take a docstring apart."""
    lines = inspect.cleandoc(text or "").splitlines()
    paragraph = " ".join(line.strip() for line in _until_blank(lines))
    return DocumentedFunction(description=paragraph or None, arguments=_arguments(lines))


def _until_blank(lines: list[str]) -> list[str]:
    blank = next((at for at, line in enumerate(lines) if not line.strip()), len(lines))
    return lines[:blank]


def _arguments(lines: list[str]) -> dict[str, str]:
    """Entries stand at the indent of the first one; lines that stand deeper carry them on."""
    found: dict[str, str] = {}
    current = ""
    indent = 0
    for line in _section(lines):
        text = line.strip()
        depth = len(line) - len(line.lstrip())
        indent = indent or depth
        entry = ARGUMENT.fullmatch(text)
        if entry and depth <= indent:
            current = entry["name"]
            found[current] = entry["text"]
        elif current:
            found[current] = f"{found[current]} {text}".strip()
    return {name: text for name, text in found.items() if text}


def _section(lines: list[str]) -> list[str]:
    """Return the lines with text of the `Args:` section, which ends where the indent does."""
    if "Args:" not in lines:
        return []
    body: list[str] = []
    for line in lines[lines.index("Args:") + 1 :]:
        if line and not line[0].isspace():
            break
        if line.strip():
            body.append(line)
    return body
