"""Journals damaged at random, so that two readers can be compared."""

import json
from random import Random
from typing import Any, cast

from tests.transfer.ejagent_files import Json, encoded, sample

_VALUES: tuple[object, ...] = (
    *(None, True, False, 0, 1, 2, 5, -1, 1.5, 2**70, "", " ", "x", [], {}),
    *("r1", "r2", "r9", "main", "side", "late", "a", "s", "op1", "op9", "retry", "fork"),
    *("user", "tool", "c1", "completed", "failed", "runtime_error", "task", "continue"),
)


def mutant(random: Random) -> list[bytes]:
    """Return the sample journal with one to three things changed, mostly well chained."""
    lines: list[Json] = [json.loads(line) for line in sample().encoded]
    for _ in range(random.randint(1, 3)):
        random.choice((_change, _change, _change, _repeat, _drop, _swap, _move))(random, lines)
    if random.random() < 0.7:
        _chain(lines)
    found = encoded(lines)
    if random.random() < 0.05:
        cut = random.choice(found)
        found[found.index(cut)] = cut[: random.randint(0, len(cut))]
    return found


def _change(random: Random, lines: list[Json]) -> None:
    """Give a key somewhere in a line another value, or take it away."""
    target: Json = random.choice(lines)
    while True:
        key = random.choice(list(target))
        inner: Any = target[key]
        if isinstance(inner, list) and inner:
            inner = random.choice(cast("Any", inner))
        if not isinstance(inner, dict) or not inner or random.random() < 0.1:
            break
        target = cast("Json", inner)
    if random.random() < 0.2:
        del target[key]
    else:
        ids = [line["record_id"] for line in lines if "record_id" in line]
        target[key] = random.choice((*_VALUES, *ids))


def _repeat(random: Random, lines: list[Json]) -> None:
    line = random.choice(lines)
    lines.insert(random.randint(0, len(lines)), line | {"record_id": f"{random.random()}"})


def _drop(random: Random, lines: list[Json]) -> None:
    if len(lines) > 1:
        lines.remove(random.choice(lines))


def _swap(random: Random, lines: list[Json]) -> None:
    first, second = random.randrange(len(lines)), random.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]


def _move(random: Random, lines: list[Json]) -> None:
    random.choice(lines)["branch_id"] = random.choice(("main", "side", "again", "late"))


def _chain(lines: list[Json]) -> None:
    """Number the lines and link each to the head of its branch, so that the rest is looked at."""
    heads: dict[object, object] = {}
    for number, line in enumerate(lines, 1):
        line["revision"] = number
        branch = str(line.get("branch_id"))
        if line.get("type") == "branch_created" and isinstance(line.get("data"), dict):
            data: Json = line["data"]
            data["source_head_id"] = heads.get(str(data.get("source_branch_id")))
            line["parent_id"] = data.get("base_record_id")
        else:
            line["parent_id"] = heads.get(branch)
        heads[branch] = line.get("record_id")
