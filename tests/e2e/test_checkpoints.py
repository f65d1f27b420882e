"""Workers write checkpoints, so that a lane of any length is taken up at once."""

from itertools import pairwise

from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_rest

from runlane.journal.checkpoints import CHECKPOINT_RECORDS
from runlane.journal.wire.records import MessageAppended, Record, RunFinished
from runlane.journal.wire.tree import Checkpoint
from runlane.producer import Client, RunStatus

RUNS = 110
"""Each leaves four records."""


def checkpoints(story: Story) -> list[Record]:
    return [record for record in story.records if isinstance(record.body, Checkpoint)]


async def test_a_lane_of_many_runs_has_one_at_the_end_of_every_so_many_records(
    fleet: Fleet, client: Client
) -> None:
    await fleet.start()
    session = client.session("s", agent="clerk")
    handles = [await session.run(f"[[say {number}]]") for number in range(RUNS)]
    assert all([(await handle).status is RunStatus.COMPLETED for handle in handles])
    story = await Story.read(client, "s")
    found = checkpoints(story)
    by_id = {record.record_id: record for record in story.records}
    assert all(isinstance(by_id[one.parent_id].body, RunFinished) for one in found)
    # What waits is on the control chain: it lies between, too.
    revisions = [0, *(one.revision for one in found), len(story.records) + 1]
    apart = [last - first for first, last in pairwise(revisions)]
    assert len(found) >= 2
    assert all(CHECKPOINT_RECORDS <= distance < CHECKPOINT_RECORDS + 10 for distance in apart[1:-1])
    assert apart[-1] < CHECKPOINT_RECORDS + 10
    assert (await session.checkout()).messages[-1].content == f"{RUNS - 1}"
    await check_rest(fleet)


async def test_a_long_run_has_some_between_its_turns_and_counts_on(
    fleet: Fleet, client: Client
) -> None:
    await fleet.start()
    session = client.session("s", agent="clerk")
    turn = f"[[tools {' ; '.join(CHECKPOINT_RECORDS // 2 * ['look'])}]]"
    result = await (await session.run(f"{turn} [[tool look]] {turn} [[tool look]] [[say done]]"))
    assert (result.status, result.output, result.turns) == (RunStatus.COMPLETED, "done", 5)
    story = await Story.read(client, "s")
    said = story.all(MessageAppended)
    assert [body.turn for body in said] == [1, 2, 3, 4, 5]
    states = [one.body.open_run for one in checkpoints(story) if isinstance(one.body, Checkpoint)]
    assert [state and (state.turn, state.usage.request_count) for state in states] == [
        (1, 1),
        (3, 3),
    ]
    assert result.usage.request_count == 5
    await check_rest(fleet)
