"""A worker dies, and the server is another one when the run goes on: intents may be lost."""

from collections.abc import Iterator

import pytest
from tests.conftest import bundled_binary
from tests.e2e.harness import Fleet

from runlane.journal.server import Server, launch
from runlane.journal.wire.messages import ToolMessage
from runlane.producer import Client, RunStatus


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with launch(tmp_path_factory.mktemp("changed"), binary=bundled_binary()) as running:
        yield running


async def results_after_a_crash(fleet: Fleet, client: Client, server: Server | None) -> list[str]:
    """Two payments in one response; the worker dies once the first intent is journaled."""
    dying = await fleet.start(kill_at="after_message_appended")
    session = client.session("s", agent="clerk")
    handle = await session.run("[[tools pay ; pay]] [[say done]]")
    await dying.ended()
    if server is not None:
        server.stop()
        server.start()
    await fleet.start()
    assert (await handle.result(timeout=60)).status is RunStatus.COMPLETED
    results = [each for each in await session.messages() if isinstance(each, ToolMessage)]
    return ["unknown" if "outcome_unknown" in each.content else each.content for each in results]


async def test_a_call_that_has_not_begun_runs_after_a_crash(fleet: Fleet, client: Client) -> None:
    assert await results_after_a_crash(fleet, client, None) == ["unknown", "paid 1"]
    assert len(fleet.ledger.all("pay")) == 1


async def test_after_a_change_of_the_server_no_side_effect_is_taken_for_not_begun(
    fleet: Fleet, client: Client, server: Server
) -> None:
    assert await results_after_a_crash(fleet, client, server) == ["unknown", "unknown"]
    assert not fleet.ledger.all("pay")
