"""Each bench, with hardly anything to measure: the figures are there, whatever they say."""

import pytest
from bench import append, checkout, loop, memory, slots, start, takeover, throughput
from bench.lab import BenchError, lab
from bench.report import Report
from bench.slots import Shape
from bench.systems.runlane_fleet import Runlane
from bench.systems.stock_arq import StockArq


def check(report: Report, *, peers: set[str]) -> None:
    assert set(report.peers) == peers
    assert all(value > 0 for value in report.figures.values())
    assert all(value > 0 for value in report.ratios.values())
    for name in report.ratios:
        figure, _, peer = name.partition("/")
        assert figure in report.figures
        assert peer in peers


async def test_start() -> None:
    report = await start.run(start.Size(rounds=1, jobs=3, jobs_of_default_arq=2))
    assert {"start_p50_ms", "start_p99_ms", "enqueue_p50_ms"} < set(report.figures)
    check(report, peers={"arq", "arq_poll_0.01"})


async def test_throughput() -> None:
    size = throughput.Size(rounds=1, runs=1000, arq_jobs=300, processes=(1, 2))
    report = await throughput.run(size)
    assert {
        "completed_by_1_process_per_s",
        "completed_by_2_processes_per_s",
        "submitted_per_s",
        "submit_cpu_us_per_job",
    } < set(report.figures)
    assert set(report.peers["arq"]) == set(report.figures)


async def test_takeover() -> None:
    report = await takeover.run(takeover.Size(trials=1, job_timeouts_s=(), lease_ms=500))
    assert set(report.figures) == {
        "takeover_p50_s",
        "takeover_max_s",
        "takeover_lease_2s_p50_s",
        "takeover_lease_2s_max_s",
    }
    check(report, peers=set())


async def test_slots() -> None:
    report = await slots.run(slots.Size(shapes=(Shape(2, 3),), jobs=8, still_s=1))
    assert report.figures == {"running_2x3_jobs": 6}
    assert report.peers == {"arq": {"running_2x3_jobs": 6}}


def with_peers(report: Report, *, peers: set[str]) -> None:
    """Skip what follows, aloud, if the peers cannot be had on this machine."""
    if report.absent:
        assert set(report.absent) <= peers
        pytest.skip(f"without its peers: {report.absent}")


async def test_append() -> None:
    size = append.Size(
        rounds=1, blocks=2, appends=3, appends_at_length=2, file_appends=1, lengths=(100, 300)
    )
    report = await append.run(size)
    assert report.figures["round_trips_per_append"] == 1
    assert {"append_p50_us", "append_p99_us", "append_server_cpu_us"} < set(report.peers["xadd"])
    at_lengths = {
        "append_at_100_records_p50_us",
        "append_at_300_records_p50_us",
        "growth_100_to_300_ratio",
    }
    assert at_lengths < set(report.figures)
    with_peers(report, peers={"ejagent_jsonl"})
    check(report, peers={"xadd", "ejagent_jsonl"})
    assert set(report.peers["ejagent_jsonl"]) == at_lengths


async def test_checkout() -> None:
    size = checkout.Size(rounds=1, checkouts=1, lengths=(20, 300), cold_lengths=(300,))
    report = await checkout.run(size)
    at_lengths = {"checkout_at_20_records_p50_ms", "checkout_at_300_records_p50_ms"}
    assert set(report.figures) == {*at_lengths, "cold_checkout_at_300_records_p50_ms"}
    peers = {"ejagent_jsonl", "langgraph_in_memory", "langgraph_sqlite"}
    with_peers(report, peers=peers)
    check(report, peers={"xrange_pages", *peers})
    assert all(set(figures) == at_lengths for figures in report.peers.values())


async def test_memory() -> None:
    report = await memory.run(memory.Size(records=600, turns=2))
    figures = report.figures
    assert figures["content_bytes"] > figures["payload_bytes"] > 0
    assert figures["uncompressed_bytes"] > figures["whole_bytes"]
    kinds = [figures[f"whole_{kind}_bytes"] for kind in ("records", "runs", "arq_mirror", "other")]
    assert 0.8 < sum(kinds) / figures["whole_bytes"] < 1.2
    assert figures["archived_records_bytes"] < figures["whole_records_bytes"]
    assert figures["cold_records_bytes"] < figures["archived_records_bytes"]
    assert figures["archived_bytes"] <= figures["archived_max_bytes"] < figures["whole_bytes"]
    peers = {"langgraph_in_memory", "langgraph_sqlite"}
    with_peers(report, peers=peers)
    check(report, peers=peers)
    assert set(report.peers["langgraph_sqlite"]) == {"turns_2_sent_bytes", "turns_2_stored_bytes"}


async def test_loop() -> None:
    cases = (
        loop.Case(name="run", turns=0, runs=1),
        loop.Case(name="parallel_call_of_2", turns=1, calls=2, parallel=True, runs=1),
    )
    report = await loop.run(loop.Size(rounds=1, cases=cases, numbers=(2, 4, 300), runs=1))
    names = {"run", "parallel_call_of_2", "run_2", "run_4", "run_300"}
    figures = {f"{name}_{time}_ms" for name in names for time in ("cpu", "wall")}
    growth = "growth_2_to_300_ratio"
    assert figures | {growth, f"journaled_{growth}"} < set(report.figures)
    assert {f"journaled_{name}_server_cpu_ms" for name in names} < set(report.figures)
    with_peers(report, peers={"ejagent", "tada"})
    check(report, peers={"ejagent", "tada"})
    assert set(report.peers["tada"]) == {*figures, growth}
    journaled = {f"journaled_{each}" for each in figures if not each.startswith("run_300")}
    assert set(report.peers["ejagent"]) == {*figures, growth, *journaled}


@pytest.mark.parametrize("system", [Runlane(), StockArq()], ids=["runlane", "arq"])
async def test_a_job_that_waits_is_unfinished_until_a_worker_ends_it(
    system: Runlane | StockArq,
) -> None:
    async with lab(system) as here:
        await here.enqueue_all(3, in_flight=2)
        assert await here.producer.unfinished() == 3
        assert await here.producer.ended() == 0
        await here.start_workers(1, slots=5)
        for number in range(3):
            await here.mark_of(number)
        while await here.producer.unfinished():
            pass
        assert await here.producer.ended() == 3


async def test_a_wait_in_vain_says_what_was_waited_for() -> None:
    async with lab(Runlane()) as here:
        await here.start_workers(1, slots=1)
        with pytest.raises(BenchError, match=r"job 7 to begin: 0\.05 s have passed"):
            await here.mark_of(7, timeout_s=0.05)


async def test_a_worker_that_ends_by_itself_ends_the_bench() -> None:
    async with lab(StockArq()) as here:
        await here.start_workers(1, slots=1)
        here.server.stop()
        with pytest.raises(BenchError, match=r"worker \d+ ended\n"):
            await here.mark_of(0)
