"""The path to a record: along parent ids, over branches, back to what stands for the rest."""

from collections.abc import Sequence

import pytest
from tests.journal.builders import intent_of, outcome_of, said, started
from tests.journal.driving import Driver
from tests.journal.folding import chain, gist

from runlane.journal.errors import RecordMissingError
from runlane.journal.lease import Lease
from runlane.journal.path import Path, read_path
from runlane.journal.projection import Projection
from runlane.journal.reader import PAGE, entry_of
from runlane.journal.wire.records import CONTROL_BRANCH
from runlane.journal.wire.tree import HistoryImported


async def path_to(driver: Driver, record_id: str) -> Path:
    return await read_path(driver.partition, "s", record_id)


async def check_all(driver: Driver) -> None:
    """Prove that the path to every record is right, and what it comes to."""
    records = await driver.records()
    for record in records:
        if record.branch_id == CONTROL_BRANCH:
            continue
        path = await path_to(driver, record.record_id)
        expected = chain(records, record.record_id)
        assert [one.record_id for one in path.records] == [one.record_id for one in expected]
        folded = Projection(chain(records, record.record_id, whole=True))
        assert gist(path.project()) == gist(folded)


async def answer(driver: Driver, branch: str = "main", *, texts: Sequence[str] = ("yo",)) -> Lease:
    """Carry out a run with a response for each text."""
    lease = await driver.held(branch=branch)
    await driver.begin(lease)
    *turns, last = [said(lease, turn, text) for turn, text in enumerate(texts, 1)]
    if turns:
        await driver.append(lease, turns)
    await driver.finish(lease, entries=[last])
    return lease


async def test_the_path_to_nothing_is_empty(driver: Driver) -> None:
    assert await path_to(driver, "") == Path(records=[])


async def test_a_path_leads_through_the_branch_from_its_first_record(driver: Driver) -> None:
    for text in ("one", "two", "three"):
        await answer(driver, texts=[text])
    path = await path_to(driver, driver.heads["s", "main"])
    kinds = ["run_started", "message_appended", "run_finished"]
    assert [record.kind for record in path.records] == 3 * kinds
    assert path.records[0].parent_id == ""
    await check_all(driver)


async def test_a_path_begins_at_the_last_checkpoint_before_its_record(driver: Driver) -> None:
    await answer(driver)
    for _ in range(2):
        await driver.completed_with_checkpoint()
        await answer(driver, texts=["a", "b"])
    records = await driver.records()
    early, late = [one for one in records if one.kind == "checkpoint"]
    path = await path_to(driver, driver.heads["s", "main"])
    assert path.records[0].record_id == late.record_id
    older = [one for one in records if early.revision < one.revision < late.revision]
    path = await path_to(driver, [one for one in older if one.branch_id == "main"][-1].record_id)
    assert path.records[0].record_id == early.record_id
    assert (await path_to(driver, early.parent_id)).records[0].parent_id == ""
    await check_all(driver)


async def test_a_path_says_how_far_and_how_large_it_is(driver: Driver) -> None:
    await driver.submit()
    lease = await driver.lease()
    first = await driver.begin(lease)
    path = await path_to(driver, first)
    assert (path.distance, path.checkpoint_size) == (1, 0)
    await driver.finish(lease)
    await driver.completed_with_checkpoint()
    await driver.branch("side")
    await answer(driver, "side")
    await answer(driver)
    stored = await driver.redis.xrange(driver.keys.log("s"))
    sizes = {fields[b"h"].decode(): len(fields[b"d"]) for _, fields in stored}
    path = await path_to(driver, driver.heads["s", "main"])
    checkpoint, *later = path.records
    assert path.distance == later[-1].revision - checkpoint.revision
    assert path.distance > len(later), "the records of the other branch lie between"
    digests = [one.record_id.rpartition(".")[2] for one in path.records]
    assert [path.checkpoint_size, path.size] == [
        sizes[digests[0]],
        sum(sizes[digest] for digest in digests[1:]),
    ]
    root = await path_to(driver, driver.heads["s", "side"])
    assert root.distance == root.records[-1].revision - root.records[0].revision + 1


async def test_branches_grow_side_by_side_and_their_paths_do_not_mix(driver: Driver) -> None:
    await answer(driver, texts=["common"])
    base = driver.heads["s", "main"]
    names = ("left", "right")
    for name in names:
        await driver.branch(name, base=base)
    for number in range(6):
        for branch in ("main", *names):
            await answer(driver, branch, texts=[f"{branch} {number}", f"{branch} again"])
        if number == 3:
            await driver.completed_with_checkpoint(branch="left")
    await check_all(driver)
    for branch in ("main", *names):
        texts = [one.content for one in (await driver.project("s", branch)).messages]
        others = [name for name in ("main", *names) if name != branch]
        assert "common" in texts
        assert not [text for text in texts if text and text.startswith(tuple(others))]
    await driver.check(quiescent=True)


async def test_a_branch_goes_on_from_a_record_far_back(driver: Driver) -> None:
    await answer(driver, texts=["first"])
    base = driver.heads["s", "main"]
    await answer(driver, texts=["x"] * (2 * PAGE))
    await driver.completed_with_checkpoint()
    await answer(driver, texts=["x"] * PAGE)
    head = await driver.branch("side", base=base)
    before = driver.partition.count
    path = await path_to(driver, head)
    assert [one.kind for one in path.records][-2:] == ["run_finished", "branch_created"]
    assert [one.content for one in path.project().messages] == ["hi", "first"]
    assert driver.partition.count - before == 4, "what lies between is not read"
    await answer(driver, "side", texts=["y"] * (PAGE + 7))
    head = driver.heads["s", "side"]
    assert (await path_to(driver, head)).records == chain(await driver.records(), head)


async def test_branches_of_branches_go_on_from_any_of_their_ancestors(driver: Driver) -> None:
    source = "main"
    for depth in range(5):
        await answer(driver, source, texts=[f"depth {depth}"])
        await answer(driver, source, texts=["the end of the branch"])
        ends = [
            one.record_id
            for one in await driver.records()
            if one.kind == "run_finished" and one.branch_id == source
        ]
        await driver.branch(f"deeper-{depth}", base=ends[-2], source=source)
        source = f"deeper-{depth}"
    await check_all(driver)
    texts = [one.content for one in (await driver.project("s", source)).messages]
    assert texts == [text for depth in range(5) for text in ("hi", f"depth {depth}")]
    await driver.check(quiescent=True)


async def test_main_goes_on_from_other_branches_one_after_the_other(driver: Driver) -> None:
    await answer(driver, texts=["old"])
    for name in ("left", "right"):
        await driver.branch(name)
        await answer(driver, name, texts=[name])
        await driver.completed_with_checkpoint()
        await driver.promote(name)
        await answer(driver, texts=[f"after {name}"])
        texts = [one.content for one in (await driver.project()).messages]
        assert texts == ["hi", name, "hi", f"after {name}"]
    await check_all(driver)
    await driver.check(quiescent=True)


async def test_a_path_ends_at_an_import(driver: Driver) -> None:
    await answer(driver)
    lease = await driver.held()
    await driver.checkout(lease)
    imported = HistoryImported(format="other", document="{}", messages=())
    head = await driver.append(lease, [imported, started(lease)])
    path = await path_to(driver, head)
    assert [one.kind for one in path.records] == ["history_imported", "run_started"]
    assert path.checkpoint_size > 0


async def test_a_checkpoint_in_a_run_is_the_beginning_of_its_path(driver: Driver) -> None:
    await answer(driver)
    base = driver.heads["s", "main"]
    lease = await driver.held()
    await driver.begin(lease)
    for turn in range(1, 4):
        asked = said(lease, turn, calls=["a", "b"])
        await driver.append(lease, [asked, intent_of(asked, 0), outcome_of(asked, 1)])
        await driver.append(lease, [outcome_of(asked, 0)])
        checkpoint = (await driver.project()).checkpoint()
        assert checkpoint is not None
        head = await driver.append(lease, [checkpoint])
        path = await path_to(driver, head)
        assert [one.kind for one in path.records] == ["checkpoint"]
        run = path.project().open_run
        assert run is not None
        assert (run.run_id, run.base_id, run.turn) == (lease.run_id, base, turn)
    await check_all(driver)
    await driver.check()


async def test_what_a_checkout_brought_is_not_read_again(driver: Driver) -> None:
    await answer(driver, texts=["x"] * 30)
    lease = await driver.held()
    found = await driver.checkout(lease)
    entries = [entry_of(raw) for raw in found.entries]
    before = driver.partition.count
    path = await read_path(driver.partition, "s", found.head, entries=entries)
    assert driver.partition.count == before
    records = await driver.records()
    assert path.records == chain(records, found.head)
    for size in (0, 1, 7):
        part = await read_path(driver.partition, "s", found.head, entries=entries[:size])
        assert part.records == path.records


@pytest.mark.parametrize("place", ["first", "middle", "head", "base"])
async def test_a_record_that_is_gone_is_named(driver: Driver, place: str) -> None:
    await answer(driver, texts=["x"] * (PAGE + 3))
    head = await driver.branch("side", base=driver.heads["s", "main"])
    records = chain(await driver.records(), head)
    at = {"first": 0, "middle": len(records) // 2, "base": -2, "head": -1}[place]
    gone = records[at].record_id
    await driver.partition.call("XDEL", driver.keys.log("s"), gone.partition(".")[0])
    with pytest.raises(RecordMissingError, match="others build on it") as refused:
        await path_to(driver, head)
    assert (refused.value.session_id, refused.value.record_id) == ("s", gone)


async def test_a_record_that_another_has_the_place_of_is_missing(driver: Driver) -> None:
    await answer(driver)
    head = driver.heads["s", "main"]
    revision, _, rest = head.partition("-")
    for other in (f"{head[:-1]}_", f"{revision}-7.{rest.partition('.')[2]}", "99-1.abc"):
        with pytest.raises(RecordMissingError) as refused:
            await path_to(driver, other)
        assert refused.value.record_id == other


async def test_a_checkpoint_that_is_gone_is_no_reason_to_guess(driver: Driver) -> None:
    await driver.completed_with_checkpoint()
    lease = await driver.held()
    revision = (await driver.lane())["checkpoint"]
    (stored,) = await driver.partition.call("XRANGE", driver.keys.log("s"), revision, revision)
    await driver.partition.call("XDEL", driver.keys.log("s"), stored[0])
    found = await driver.checkout(lease)
    entries = [entry_of(raw) for raw in found.entries]
    with pytest.raises(RecordMissingError) as refused:
        await read_path(driver.partition, "s", found.head, entries=entries)
    assert refused.value.record_id == found.head
