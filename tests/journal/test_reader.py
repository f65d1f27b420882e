"""Reading a journal in pages, and what damaged entries are called."""

from typing import Any

import pytest
from tests.journal.builders import said
from tests.journal.driving import Driver

from runlane.journal.errors import UndecodableError
from runlane.journal.reader import PAGE, read_page, read_records, record_of, record_of_message
from runlane.journal.wire.codec import encode
from runlane.journal.wire.records import AbortRequested

BODY = encode(AbortRequested(run_id="r", branch_id="main", reason="enough"))
FIELDS = {
    b"b": b"@control",
    b"p": b"6-9.abc",
    b"k": b"abort_requested",
    b"h": b"f" * 24,
    b"t": b"1000",
    b"d": BODY,
}


def entry(fields: dict[bytes, bytes]) -> Any:
    return [b"7-9", [word for pair in fields.items() for word in pair]]


def test_an_entry_is_a_record() -> None:
    record = record_of(entry(FIELDS))
    assert (record.revision, record.record_id) == (7, f"7-9.{'f' * 24}")
    assert (record.branch_id, record.parent_id, record.at_ms) == ("@control", "6-9.abc", 1000)
    assert encode(record.body) == BODY


def test_a_live_message_is_the_same_record() -> None:
    message = b"\0".join([b"7-9", *FIELDS.values()])
    assert record_of_message(message) == record_of(entry(FIELDS))


@pytest.mark.parametrize("name", FIELDS)
def test_an_entry_without_a_field_is_undecodable(name: bytes) -> None:
    with pytest.raises(UndecodableError):
        record_of(entry({key: value for key, value in FIELDS.items() if key != name}))


@pytest.mark.parametrize(
    ("name", "value"),
    [(b"k", b"teleported"), (b"k", b"\xff"), (b"t", b"now"), (b"b", b"\xff"), (b"d", b"\xc1")],
)
def test_a_damaged_entry_is_undecodable(name: bytes, value: bytes) -> None:
    with pytest.raises(UndecodableError):
        record_of(entry(FIELDS | {name: value}))


async def test_a_long_journal_comes_in_pages_and_nothing_is_left_out(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    turns = 2 * PAGE + 7
    await driver.append(lease, [said(lease, turn) for turn in range(1, turns + 1)])
    revisions = [record.revision async for record in read_records(driver.partition, "s")]
    assert revisions == list(range(1, turns + 3))
    page = await read_page(driver.partition, "s", after=PAGE)
    assert [record.revision for record in page] == list(range(PAGE + 1, 2 * PAGE + 1))
    tail = [record async for record in read_records(driver.partition, "s", after=turns)]
    assert [record.revision for record in tail] == [turns + 1, turns + 2]


async def test_a_session_that_never_was_has_no_records(driver: Driver) -> None:
    assert await driver.records("nowhere") == []
