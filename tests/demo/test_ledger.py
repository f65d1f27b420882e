"""The ledger."""

from pathlib import Path

import pytest

from runlane.worker.demo.ledger import LEDGER_VARIABLE, Entry, Ledger, Mark, under_way

STARTED = Entry(Mark.STARTED, "r:1:0", 1, 10)
DONE = Entry(Mark.DONE, "r:1:0", 1, 10)
OTHER = Entry(Mark.STARTED, "r:2:0", 2, 11)


def test_what_was_appended_is_read(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.read() == []
    for entry in (STARTED, DONE, OTHER):
        ledger.append(entry)
    assert ledger.read() == [STARTED, DONE, OTHER]
    assert ledger.path.read_text().splitlines()[0] == "started r:1:0 1 10"


def test_a_call_is_under_way_until_it_is_done() -> None:
    assert under_way([STARTED, OTHER]) == [STARTED, OTHER]
    assert under_way([STARTED, OTHER, DONE]) == [OTHER]


def test_without_a_name_it_lies_in_the_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LEDGER_VARIABLE, raising=False)
    monkeypatch.setenv("RUNLANE_DATA_DIR", str(tmp_path / "data"))
    ledger = Ledger.from_env()
    ledger.append(STARTED)
    assert ledger.path.parent == tmp_path / "data"
