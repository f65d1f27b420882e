"""Each rule of EJAgent's format, broken once."""

import pytest
from tests.transfer.breaches import ACCEPTED, OURS, REFUSED
from tests.transfer.breaking import Breach

from runlane.journal.errors import JournalFormatError
from runlane.journal.transfer.jsonl_reader import read_jsonl


@pytest.mark.parametrize(
    "breach",
    [
        pytest.param(breach, id=name)
        for corpus in (REFUSED, OURS)
        for name, breach in corpus.items()
    ],
)
def test_a_breach_is_refused_by_line_and_reason(breach: Breach) -> None:
    lines, number, says = breach
    with pytest.raises(JournalFormatError) as caught:
        read_jsonl(lines, session_id="s")
    assert caught.value.line == number
    assert says in caught.value.reason
    assert f"line {number} " in str(caught.value)


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_only_looks_odd_is_read(name: str) -> None:
    assert read_jsonl(ACCEPTED[name], session_id="s").session_id == "s"


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(JournalFormatError, match=r"line 1 .* no complete record"):
        read_jsonl([])


def test_a_line_without_its_end_in_the_middle_is_refused() -> None:
    first, second, *_ = ACCEPTED["sample"]
    with pytest.raises(JournalFormatError, match=r"line 2 .* no end"):
        read_jsonl([first, second[:-1], second])


def test_the_file_of_another_session_is_refused() -> None:
    with pytest.raises(JournalFormatError, match="session_id is 's', not 't'"):
        read_jsonl(ACCEPTED["sample"], session_id="t")


def test_nesting_without_end_is_refused() -> None:
    deep = b'{"data":' * 100_000 + b"\n"
    with pytest.raises(JournalFormatError, match="line 1 "):
        read_jsonl([deep])
