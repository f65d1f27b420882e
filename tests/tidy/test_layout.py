"""Checks of the code itself: what no linter knows about this project."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.tidy.repository import FOLDERS, ROOT, repository_files

SOURCES: Final = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
MODULE_LINES_MAX: Final = 400
FUNCTION_LINES_MAX: Final = 60

REGISTRY_HOSTS: Final = tuple(
    ".".join(words)
    for words in (
        *(("pypi", "org"), ("pythonhosted", "org"), ("anaconda", "org")),
        *(("npmjs", "org"), ("npmjs", "com"), ("yarnpkg", "com"), ("jsr", "io")),
        *(("proxy", "golang", "org"), ("crates", "io"), ("rubygems", "org")),
        *(("maven", "org"), ("packagist", "org"), ("nuget", "org")),
    )
)
PRIVATE_WORDS: Final = ("/".join(("..", "shared")), " ".join(("issue", "#")))
UNSAFE_FORMATS: Final = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_folder_of_the_namespace_has_an_init(folder: str) -> None:
    assert not (ROOT / folder / "runlane" / "__init__.py").exists()
    inside = [path.name for path in (ROOT / folder / "runlane").iterdir()]
    assert [name for name in inside if name != "__pycache__"] == [folder]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_modules_and_functions_stay_small(path: Path) -> None:
    source = path.read_text("utf-8")
    assert len(source.splitlines()) <= MODULE_LINES_MAX
    lengths = {
        node.name: (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES_MAX} == {}


def imports_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_format_that_executes_what_it_reads_is_imported(path: Path) -> None:
    assert set(imports_of(ast.parse(path.read_text("utf-8")))) & UNSAFE_FORMATS == set()


def test_no_file_names_a_package_registry() -> None:
    """Where packages come from is the user's setting, not ours."""
    found = [
        f"{name_of(path)}: {host}"
        for path, text in repository_files()
        for host in REGISTRY_HOSTS
        if host in text
    ]
    assert found == []


def test_no_file_mentions_what_readers_cannot_see() -> None:
    found = [
        f"{name_of(path)}: {word}"
        for path, text in repository_files()
        for word in PRIVATE_WORDS
        if word in text.lower()
    ]
    assert found == []


ROW: Final = re.compile(r"\|\s*`(?P<path>[\w./-]+)`\s*\|\s*`(?P<symbol>[\w.]+)(?:\(\))?`\s*\|")


def names_in(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """Yield functions, classes and constants of a module, methods as `Class.method`."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.ClassDef(name=name, body=inner):
                yield prefix + name
                yield from names_in(inner, f"{prefix}{name}.")
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name
            case ast.Assign(targets=targets):
                yield from (prefix + each.id for each in targets if isinstance(each, ast.Name))
            case _:
                pass


def has(name: str, symbol: str) -> bool:
    path = ROOT / name
    return path.is_file() and symbol in names_in(ast.parse(path.read_text("utf-8")).body)


def test_the_life_of_a_run_names_what_exists() -> None:
    page = ROOT / "docs" / "life_of_a_run.md"
    if not page.exists():
        pytest.skip("docs/life_of_a_run.md is not written yet")
    rows = [found for line in page.read_text("utf-8").splitlines() if (found := ROW.search(line))]
    assert rows, "no row names a `path` and a `symbol`"
    places = [(row["path"], row["symbol"]) for row in rows]
    assert [place for place in places if not has(*place)] == []
