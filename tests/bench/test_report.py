"""Arithmetic and tables."""

from io import StringIO

import msgspec
import pytest
from bench.report import compare, medians, percentile
from msgspec.structs import replace
from rich.console import Console
from tests.bench.support import report


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([3, 1, 2], 50, 2), ([4, 1, 3, 2], 50, 2), ([7], 99, 7), (range(1, 101), 99, 99)],
)
def test_percentile_is_the_nearest_rank(values: list[float], percent: int, expected: float) -> None:
    assert percentile(values, percent) == expected


def test_medians_are_taken_figure_by_figure() -> None:
    assert medians([{"a": 1, "b": 9}, {"a": 5, "b": 8}, {"a": 3, "b": 7}]) == {"a": 3, "b": 8}


def test_a_ratio_above_one_means_that_runlane_is_better() -> None:
    ratios = compare(
        {"wait_ms": 2.0, "rate_per_s": 300.0, "alone": 1.0},
        {"arq": {"wait_ms": 10.0, "rate_per_s": 100.0}, "fast": {"wait_ms": 1.0}},
        less=["wait_ms", "alone"],
        more=["rate_per_s"],
    )
    assert ratios == {"wait_ms/arq": 5.0, "rate_per_s/arq": 3.0, "wait_ms/fast": 0.5}


def test_the_table_has_a_column_and_ratios_for_each_peer() -> None:
    head, rows = report().rows()
    assert head == ["figure", "runlane", "arq", "ratio", "other", "ratio"]
    assert rows == [
        ["start_p50_ms", "2", "1,250", "625", "1", "0.5"],
        ["own_ms", "1.25", *[""] * 4],
    ]


def test_the_table_is_readable_on_a_terminal_and_in_a_page() -> None:
    console = Console(width=80, file=StringIO())
    with console.capture() as capture:
        console.print(report().table())
    assert "start_p50_ms" in capture.get()
    lines = report().markdown().splitlines()
    assert lines[1] == "| --- | ---: | ---: | ---: | ---: | ---: |"
    assert {line.count("|") for line in lines} == {7}


def test_an_absent_peer_is_named_with_the_reason() -> None:
    without = replace(report(), absent={"ejagent_jsonl": "no Python is new enough"})
    line = "ejagent_jsonl is absent: no Python is new enough"
    assert without.markdown().splitlines()[-1] == line
    console = Console(width=80, file=StringIO())
    with console.capture() as capture:
        console.print(without.table())
    assert line in capture.get()
    assert msgspec.json.decode(msgspec.json.encode(without))["absent"]
    assert "absent" not in msgspec.json.decode(msgspec.json.encode(report()))
