"""`python -m bench`: names, output, and what `all` keeps."""

import json
from pathlib import Path

import bench.__main__ as command
import pytest
from click.testing import CliRunner
from tests.bench.support import report


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, bool]]:
    """Record what is asked for; measure nothing, and keep the results elsewhere."""
    calls: list[tuple[str, bool]] = []

    def measure(name: str, *, full: bool) -> object:
        calls.append((name, full))
        return report(name)

    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    return calls


@pytest.mark.parametrize("arguments", [["stat"], []])
def test_an_unknown_name_is_a_usage_error_that_lists_the_names(arguments: list[str]) -> None:
    result = CliRunner().invoke(command.main, arguments)
    assert result.exit_code == 2
    for name in (*command.BENCHES, "all"):
        assert name in result.output


def test_every_bench_says_what_it_measures() -> None:
    for module in command.BENCHES.values():
        assert module.__doc__
        assert module.SHORT
        assert module.FULL


def test_json_is_one_object_for_each_bench(measured: list[tuple[str, bool]]) -> None:
    result = CliRunner().invoke(command.main, ["slots", "--json", "--full"])
    found = json.loads(result.output)
    assert set(found) == {"name", "machine", "figures", "peers", "ratios"}
    assert set(found["machine"]) == {"cores", "python", "server", "load"}
    assert found["peers"]["arq"] == {"start_p50_ms": 1250}
    assert measured == [("slots", True)]


def test_a_table_is_printed_without_json(measured: list[tuple[str, bool]]) -> None:
    result = CliRunner().invoke(command.main, ["start"])
    assert "start_p50_ms" in result.output
    assert measured == [("start", False)]


def test_a_single_bench_keeps_nothing(measured: list[tuple[str, bool]], tmp_path: Path) -> None:
    CliRunner().invoke(command.main, ["start"], catch_exceptions=False)
    assert measured
    assert list(tmp_path.iterdir()) == []


def test_all_writes_the_page_and_the_json(measured: list[tuple[str, bool]], tmp_path: Path) -> None:
    result = CliRunner().invoke(command.main, ["all", "--json"], catch_exceptions=False)
    names = list(command.BENCHES)
    assert [json.loads(line)["name"] for line in result.output.splitlines()] == names
    assert [name for name, _ in measured] == names
    kept = sorted((tmp_path / "bench" / "results").iterdir())
    assert [path.name for path in kept] == [f"{name}.json" for name in sorted(names)]
    assert json.loads(kept[0].read_text())["figures"]
    page = (tmp_path / "docs" / "benchmarks.md").read_text()
    assert "`python -m bench all`" in page
    assert "valkey 9.0.0" in page
    for name, module in command.BENCHES.items():
        assert f"## {name}\n" in page
        assert str(module.__doc__).strip() in page
