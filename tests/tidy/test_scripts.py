"""The scripts keep the contracts that their headers state."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.checkers.keyspace import kinds_of
from tests.tidy.repository import FOLDERS, ROOT

from runlane.journal import lua
from runlane.journal.keys import Keys
from runlane.journal.lua.scripts import load

LUA: Final = Path(lua.__file__).parent
NAMES: Final = sorted(path.stem for path in LUA.glob("*.lua"))
CODE_RETURNED: Final = re.compile(r"return (?:nil, )?\{ '([A-Z_]+)'")
LOCAL_FUNCTION: Final = re.compile(r"^local function (\w+)\((.*?)^end", re.MULTILINE | re.DOTALL)
HEADER_ARG: Final = re.compile(r"^ARGV\[(\d+)(\.\.\.)?\] ", re.MULTILINE)


def header_of(name: str) -> str:
    return (LUA / f"{name}.lua").read_text("utf-8").partition("]]\n")[0]


def refusals_in(text: str, functions: dict[str, str]) -> set[str]:
    """Return the codes of the functions that a text is refused by, directly or through others."""
    codes: set[str] = set()
    for name in re.findall(r"refused = .*?(\w+)\(", text):
        called = functions[name]
        codes |= {*CODE_RETURNED.findall(called), *refusals_in(called, functions)}
    return codes


@pytest.mark.parametrize("name", NAMES)
def test_a_script_uses_exactly_the_arguments_that_its_header_names(name: str) -> None:
    named = HEADER_ARG.findall(header_of(name))
    fixed = {int(number) for number, rest in named if not rest}
    variable = [int(number) for number, rest in named if rest]
    body = load(name).body
    assert {int(number) for number in re.findall(r"\bARGV\[(\d+)\]", body)} == fixed
    starts = re.findall(r"\b(\d+), (?:#ARGV|n\b)", body)
    assert {int(start) for start in starts} == set(variable)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_returns_exactly_the_codes_that_its_header_names(name: str) -> None:
    script = load(name)
    returned = set(CODE_RETURNED.findall(script.body))
    if "return refused" in script.body:
        returned |= refusals_in(script.body, dict(LOCAL_FUNCTION.findall(script.source)))
    assert returned == script.codes


@pytest.mark.parametrize("path", sorted((LUA / "include").glob("*.lua")), ids=lambda p: p.stem)
def test_an_include_names_no_argument_by_number(path: Path) -> None:
    assert re.findall(r"\bARGV\[\d+\]", path.read_text("utf-8")) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_script_touches_only_keys_that_have_a_function(name: str) -> None:
    keys = Keys.of("p")
    channels = {keys.events(""), keys.control("")}
    kinds = {kind.rstrip(":") for kind in kinds_of(keys)}
    kinds |= {channel.removeprefix(f"{keys.root}:").rstrip(":") for channel in channels}
    used = re.findall(r"key\('(\w+)'|root \.\. ':(\w+)'", load(name).source)
    assert {one or other for one, other in used} <= kinds


@pytest.mark.parametrize("name", NAMES)
def test_an_include_that_a_script_names_is_used_by_it(name: str) -> None:
    """Functions of an include, directly or through another include of the script."""
    script = load(name)
    for include in re.findall(r"--- @include (\w+)", script.body):
        text = (LUA / "include" / f"{include}.lua").read_text("utf-8")
        functions = re.findall(r"^local function (\w+)", text, re.MULTILINE)
        others = script.source.replace(text, "")
        assert [function for function in functions if f"{function}(" in others], include


def calls_of_scripts() -> Iterator[tuple[str, str]]:
    """Yield script and the function that carries it out, for each place that does."""
    for path in (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    if isinstance(node, ast.Call) and (name := script_called(node)):
                        yield name, f"{path.relative_to(ROOT)} {function.name}"


def script_called(call: ast.Call) -> str | None:
    match call:
        case ast.Call(
            func=ast.Attribute(attr="transition") | ast.Name(id="load"),
            args=[ast.Constant(value=str(name)), *_],
        ):
            return name
        case _:
            return None


def test_each_script_is_carried_out_by_the_one_function_of_its_name() -> None:
    folder = "journal/runlane/journal/transitions"
    assert sorted(calls_of_scripts()) == [(name, f"{folder}/{name}.py {name}") for name in NAMES]


def test_each_key_function_says_what_lies_there() -> None:
    types = r"(HASH|ZSET|SET|LIST|STRING|STREAM|CHANNEL)\b.*\w"
    functions = [
        (name, function)
        for name, function in inspect.getmembers(Keys, inspect.isfunction)
        if not name.startswith("_")
    ]
    silent = [name for name, function in functions if not re.match(types, function.__doc__ or "")]
    assert silent == []
    assert len(functions) > 15
