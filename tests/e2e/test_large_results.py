"""A tool says more than a record holds: the model reads a part of it, and nothing is lost."""

from typing import Any, cast

from redis.asyncio import Redis
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_rest

from runlane.journal.wire.messages import ToolMessage
from runlane.journal.wire.records import ToolCompleted
from runlane.producer import Client, RunStatus

SIZE = 3_000_000
WHOLE = "0123456789" * (SIZE // 10)


async def test_all_of_a_result_is_kept_and_branches_share_it(
    fleet: Fleet, client: Client, redis: Redis
) -> None:
    await fleet.start()
    session = client.session("s", agent="clerk")
    asked = f'[[tool recite {{"size": {SIZE}}}]] [[say done]]'
    assert (await (await session.run(asked))).output == "done"
    side = await session.fork()
    assert (await (await side.run(asked))).status is RunStatus.COMPLETED

    first, second = (await Story.read(client, "s")).all(ToolCompleted)
    assert first.full is not None
    assert first.full == second.full
    assert (first.full.size, first.full.media_type) == (SIZE, "text/plain")
    for branch in (session, side):
        assert await branch.blob(first.full) == WHOLE.encode()
        read = [each for each in await branch.messages() if isinstance(each, ToolMessage)]
        excerpt, _, marker = read[-1].content.rpartition("\n")
        assert WHOLE.startswith(excerpt)
        assert len(excerpt) == 1024 * 1024
        assert f"all {SIZE} are kept as blob {first.full.digest}" in marker
    assert await cast("Any", redis).hget(fleet.keys.blob("s", first.full.digest), "refs") == b"2"
    await check_rest(fleet)


async def test_what_is_over_the_limit_is_dropped_and_the_model_is_told(
    fleet: Fleet, client: Client
) -> None:
    await fleet.start(blob_bytes_max=2_000_000)
    session = client.session("s", agent="clerk")
    await (await session.run(f'[[tool recite {{"size": {SIZE}}}]] [[say done]]'))
    (told,) = (await Story.read(client, "s")).all(ToolCompleted)
    assert told.full is not None
    assert await session.blob(told.full) == WHOLE[:2_000_000].encode()
    assert told.message.content.endswith(
        f"the first 2000000 are kept as blob {told.full.digest}, the rest is lost]"
    )
    await check_rest(fleet)
