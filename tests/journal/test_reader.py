"""Reading a journal in pages, and what damaged entries are called."""

from typing import Any

import pytest
from tests.journal.builders import result_of, said
from tests.journal.driving import Driver

from runlane.journal.errors import UndecodableError
from runlane.journal.reader import (
    PAGE,
    entry_of,
    read_page,
    read_page_back,
    read_record,
    read_records,
    read_records_back,
    record_of,
    record_of_message,
)
from runlane.journal.wire.codec import decode_body, encode
from runlane.journal.wire.records import AbortRequested, RunFinished

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
    record = record_of(entry_of(entry(FIELDS)))
    assert (record.revision, record.record_id) == (7, f"7-9.{'f' * 24}")
    assert (record.branch_id, record.parent_id, record.at_ms) == ("@control", "6-9.abc", 1000)
    assert encode(record.body) == BODY


def test_a_live_message_is_the_same_record() -> None:
    message = b"\0".join([b"7-9", *FIELDS.values()])
    assert record_of_message(message) == record_of(entry_of(entry(FIELDS)))


@pytest.mark.parametrize("name", FIELDS)
def test_an_entry_without_a_field_is_undecodable(name: bytes) -> None:
    with pytest.raises(UndecodableError):
        entry_of(entry({key: value for key, value in FIELDS.items() if key != name}))


@pytest.mark.parametrize(
    ("name", "value"),
    [(b"k", b"teleported"), (b"k", b"\xff"), (b"t", b"now"), (b"b", b"\xff"), (b"d", b"\xc1")],
)
def test_a_damaged_entry_is_undecodable(name: bytes, value: bytes) -> None:
    with pytest.raises(UndecodableError):
        record_of(entry_of(entry(FIELDS | {name: value})))


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


async def test_a_journal_is_read_backwards_too(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.append(lease, [said(lease, turn) for turn in range(1, PAGE + 8)])
    records = await driver.records()
    assert [record async for record in read_records_back(driver.partition, "s")] == records[::-1]
    tail = [record async for record in read_records_back(driver.partition, "s", upto=3)]
    assert [record.revision for record in tail] == [3, 2, 1]
    page = await read_page_back(driver.partition, "s", upto=PAGE, count=2)
    assert [record.revision for record in page] == [PAGE, PAGE - 1]


async def test_a_record_is_found_by_its_whole_id_alone(driver: Driver) -> None:
    await driver.completed()
    for record in await driver.records():
        found = await read_record(driver.partition, "s", record.record_id)
        assert found == record
        other = f"{record.record_id[:-1]}_"
        assert await read_record(driver.partition, "s", other) is None
    assert await read_record(driver.partition, "s", "99-1.abc") is None


async def test_an_output_that_is_the_text_before_it_is_stored_once_and_always_read(
    driver: Driver,
) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    async with driver.hearing(driver.keys.events("s")) as heard:
        finished = await driver.finish(lease, entries=[said(lease, text="all")], output="all")
    stored = await driver.redis.xrevrange(driver.keys.log("s"), count=1)
    body = decode_body("run_finished", stored[0][1][b"d"])
    assert isinstance(body, RunFinished)
    assert (body.result.output, body.output_in_parent) == (None, True)
    end = RunFinished(run_id=lease.run_id, branch_id="main", result=result_of(output="all"))
    partition = driver.partition
    for found in (
        await read_record(partition, "s", finished.head),
        (await read_page(partition, "s", after=3))[0],
        (await read_page_back(partition, "s", count=1))[0],
        (await driver.records())[-1],
        record_of_message(heard[-1][1:]),
    ):
        assert found is not None
        assert (found.record_id, found.body) == (finished.head, end)


@pytest.mark.parametrize(
    ("text", "output"), [("all", "other"), ("all", None), ("", None)], ids=repr
)
async def test_an_output_of_its_own_is_stored(
    driver: Driver, text: str, output: str | None
) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.finish(lease, entries=[said(lease, text=text)], output=output)
    end = (await driver.records())[-1].body
    assert isinstance(end, RunFinished)
    assert (end.result.output, end.output_in_parent) == (output, False)
    await driver.check(quiescent=True)


async def test_an_output_whose_record_is_lost_is_undecodable(driver: Driver) -> None:
    lease = await driver.held()
    await driver.begin(lease)
    await driver.finish(lease, entries=[said(lease, text="all")], output="all")
    (answer,) = [one for one in await driver.records() if one.kind == "message_appended"]
    stream_id = answer.record_id.partition(".")[0]
    await driver.partition.call("XDEL", driver.keys.log("s"), stream_id)
    with pytest.raises(UndecodableError, match=f"has its output in {answer.record_id}"):
        await driver.records()


async def test_a_session_that_never_was_has_no_records(driver: Driver) -> None:
    assert await driver.records("nowhere") == []
