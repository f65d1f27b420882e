"""At the levels `ha-acked` and `ha-all` an answer means that replicas have what it says."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from tests.durability.replicas import asking, stopped
from tests.e2e.waiting import until
from tests.journal.builders import intent_of, job_of, outcome_of, result_of, said, started

from runlane.journal import transitions
from runlane.journal.errors import DurabilityError, UnknownAgentError
from runlane.journal.lease import Lease
from runlane.journal.partition import Partition
from runlane.journal.server import Server
from runlane.journal.settings import Durability
from runlane.journal.transitions import Submitted
from runlane.journal.transitions.register import WorkerInfo
from runlane.journal.wire.records import AnyBody

INFO = WorkerInfo(host="h", pid=1, agents={"a": "1"}, max_runs=10)


@asynccontextmanager
async def opened(
    server: Server, prefix: str, durability: Durability, retry_s: float = 30
) -> AsyncGenerator[Partition, None]:
    partition = Partition(server.url, prefix=prefix, retry_s=retry_s, durability=durability)
    try:
        await partition.open()
        await transitions.register(partition, worker_id="w", lease_ms=60_000, info=INFO)
        yield partition
    finally:
        await partition.close()


async def submit(partition: Partition, session: str = "s", **options: Any) -> Submitted:
    job = job_of(session=session)
    return await transitions.submit(partition, job, payload_bytes_max=100_000, **options)


def waits(server: Server) -> int:
    with asking(server.port) as redis:
        return int(redis.info("commandstats").get("cmdstat_wait", {}).get("calls", 0))


def known_to(server: Server, partition: Partition, run_id: str) -> bool:
    with asking(server.port) as redis:
        return bool(redis.exists(partition.keys.run(run_id)))


@pytest.mark.parametrize("durability", ["local", "local-strict", "ha"])
async def test_at_the_other_levels_nothing_waits_for_replicas(
    trio: list[Server], prefix: str, durability: Durability
) -> None:
    master, *replicas = trio
    before = waits(master)
    async with opened(master, prefix, durability) as partition:
        with stopped(replicas[0]), stopped(replicas[1]):
            assert (await submit(partition)).created
    assert waits(master) == before


async def test_an_answer_means_that_one_replica_has_it(trio: list[Server], prefix: str) -> None:
    master, idle, other = trio
    async with opened(master, prefix, "ha-acked") as partition:
        with stopped(idle):
            for number in range(20):
                run_id = (await submit(partition, f"s{number}")).run_id
                assert known_to(other, partition, run_id)


async def test_an_answer_at_the_highest_level_means_that_each_replica_has_it(
    trio: list[Server], prefix: str
) -> None:
    master, *replicas = trio
    async with opened(master, prefix, "ha-all") as partition:
        for number in range(20):
            run_id = (await submit(partition, f"s{number}")).run_id
            assert all(known_to(replica, partition, run_id) for replica in replicas)


async def test_one_silent_replica_is_too_many_at_the_highest_level(
    trio: list[Server], prefix: str
) -> None:
    master, silent, _ = trio
    async with opened(master, prefix, "ha-all", retry_s=0) as partition:
        with stopped(silent), pytest.raises(DurabilityError) as unconfirmed:
            await submit(partition)
    assert (unconfirmed.value.replicas, unconfirmed.value.needed) == (1, 2)


async def test_what_no_replica_confirms_is_carried_out_and_said_to_be_unconfirmed(
    trio: list[Server], prefix: str
) -> None:
    master, *replicas = trio
    async with opened(master, prefix, "ha-acked", retry_s=0) as partition:
        with stopped(replicas[0]), stopped(replicas[1]):
            with pytest.raises(DurabilityError, match="Send the same request again") as error:
                await submit(partition, idempotency_key="k")
            run_id = error.value.request_id
            assert error.value.replicas == 0
            assert known_to(master, partition, run_id)
        again = await submit(partition, idempotency_key="k")
    assert (again.run_id, again.created) == (run_id, False)


async def test_a_repeated_request_is_not_taken_for_confirmed_either(
    trio: list[Server], prefix: str
) -> None:
    """It writes nothing, and on a new connection there is nothing that WAIT would wait for."""
    master, *replicas = trio
    with stopped(replicas[0]), stopped(replicas[1]):
        for _ in range(3):
            async with opened(master, prefix, "ha-acked", retry_s=0) as partition:
                with pytest.raises(DurabilityError):
                    await submit(partition, idempotency_key="k")


async def test_a_caller_that_goes_on_trying_is_answered_once_a_replica_is_back(
    trio: list[Server], prefix: str
) -> None:
    master, *replicas = trio
    async with opened(master, prefix, "ha-acked") as partition:
        with stopped(replicas[0]), stopped(replicas[1]):
            waiting = asyncio.create_task(submit(partition))
            with asking(master.port) as redis:
                key = partition.keys.sessions()
                await until(lambda: bool(redis.exists(key)), "the master has accepted it")
            assert not waiting.done()
        run_id = (await waiting).run_id
        assert any(known_to(replica, partition, run_id) for replica in replicas)


async def test_a_refusal_needs_no_confirmation(trio: list[Server], prefix: str) -> None:
    master, *replicas = trio
    async with opened(master, prefix, "ha-acked") as partition:
        with stopped(replicas[0]), stopped(replicas[1]), pytest.raises(UnknownAgentError):
            await transitions.submit(partition, job_of(agent="nobody"), payload_bytes_max=1000)


async def test_requests_of_one_moment_share_a_confirmation(trio: list[Server], prefix: str) -> None:
    master = trio[0]
    async with opened(master, prefix, "ha-acked") as partition:
        await submit(partition, "warm-up")  # the server knows the script
        before = waits(master)
        await asyncio.gather(*(submit(partition, f"s{number}") for number in range(200)))
    assert waits(master) == before + 1


async def test_a_full_run_asks_for_confirmation_where_a_loss_could_repeat_a_side_effect(
    trio: list[Server], prefix: str
) -> None:
    """Text alone and the intent to call a harmless tool ride with the next such step."""
    master = trio[0]
    async with AsyncExitStack() as stack:
        partition = await stack.enter_async_context(opened(master, prefix, "ha-acked"))
        counts = [waits(master)]

        def count() -> None:
            counts.append(waits(master))

        async def append(*bodies: AnyBody) -> str:
            appended = await transitions.append(
                partition, lease, bodies, head=head, progress=True, retry_s=30
            )
            count()
            return appended.head

        submitted = await submit(partition)
        count()
        lease = await claimed(partition)
        head = (await transitions.checkout(partition, lease, page=10)).head
        count()
        head = await append(started(lease))
        first = said(lease, calls=["look"])
        head = await append(first, intent_of(first, 0, effect="read_only"))
        head = await append(outcome_of(first, 0))
        second = said(lease, turn=2, calls=["pay"])
        head = await append(second, intent_of(second, 0))
        head = await append(outcome_of(second, 0))
        head = await append(said(lease, turn=3))
        await transitions.abort(partition, submitted.run_id, branch_id="main", reason="enough")
        count()
        await transitions.finish(partition, lease, result_of(), entries=[], head=head, retry_s=30)
        count()
    asked = [after > before for before, after in pairwise(counts)]
    assert asked == [True, False, True, False, True, True, True, False, True, True]


async def claimed(partition: Partition) -> Lease:
    claim = await transitions.claim(
        partition,
        worker_id="w",
        queues=["a"],
        slots=1,
        lease_ms=60_000,
        crashes_max=3,
        crashes_total_max=10,
    )
    (run,) = claim.runs
    return run.lease
