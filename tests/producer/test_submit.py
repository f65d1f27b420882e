"""Asking for runs: what is accepted, what is refused, and that a refusal leaves nothing."""

import asyncio
from typing import Any, cast

import pytest
from redis.asyncio import Redis
from tests.producer.hand_worker import HandWorker

from runlane.producer import (
    AgentMismatchError,
    Client,
    ContinueRejectedError,
    ContinueRejectedReason,
    ControlStatus,
    FollowUpFailurePolicy,
    FollowUpRejectedError,
    IdempotencyConflictError,
    InvalidInputError,
    PayloadTooLargeError,
    RunState,
    ServerUnavailableError,
    ServerUnsuitableError,
    Session,
    Settings,
    StopReason,
    UnknownAgentError,
    UnknownSessionError,
)


async def keys_of(redis: Redis, prefix: str) -> set[bytes]:
    keys: set[bytes] = set(await cast("Any", redis).keys(f"{prefix}:*"))
    return keys


async def test_a_run_is_accepted_and_carried_out(session: Session, worker: HandWorker) -> None:
    handle = await session.run("hello")
    assert (handle.session_id, handle.branch_id) == ("s1", "main")
    await worker.complete("hi there")
    result = await handle
    assert result.succeeded
    assert result.output == "hi there"


async def test_the_agent_of_a_session_need_not_be_named_again(
    client: Client, session: Session
) -> None:
    await session.run("hello")
    handle = await client.session("s1").run("more")
    assert (await handle.status()).agent == "support"


async def test_a_new_session_needs_an_agent(
    client: Client, worker: HandWorker, redis: Redis, prefix: str
) -> None:
    before = await keys_of(redis, prefix)
    with pytest.raises(UnknownSessionError, match="name the agent"):
        await client.session("new").run("hello")
    assert await keys_of(redis, prefix) == before


async def test_a_session_keeps_its_agent(client: Client, session: Session) -> None:
    await session.run("hello")
    with pytest.raises(AgentMismatchError, match="'support'"):
        await client.session("s1", agent="sales").run("hello")


async def test_an_agent_that_was_never_served_is_refused(
    client: Client, worker: HandWorker, redis: Redis, prefix: str
) -> None:
    before = await keys_of(redis, prefix)
    with pytest.raises(UnknownAgentError, match=r"known: sales, support"):
        await client.session("s1", agent="suport").run("hello")
    assert await keys_of(redis, prefix) == before


async def test_one_idempotency_key_is_one_run(client: Client, session: Session) -> None:
    first = await session.run("hello", idempotency_key="k")
    assert (await session.run("hello", idempotency_key="k")).run_id == first.run_id
    with pytest.raises(IdempotencyConflictError, match=first.run_id):
        await session.run("other", idempotency_key="k")
    other = client.session("s2", agent="support")
    assert (await other.run("hello", idempotency_key="k")).run_id != first.run_id
    assert (await session.status()).waiting == 0


async def test_one_key_at_the_same_time_is_one_run(session: Session) -> None:
    handles = await asyncio.gather(*(session.run("hello", idempotency_key="k") for _ in range(50)))
    assert len({handle.run_id for handle in handles}) == 1


@pytest.mark.parametrize("task", ["", " \n\t", "lone \ud800 surrogate", None, 5, b"bytes", ["x"]])
async def test_a_bad_task_stores_nothing(
    session: Session, redis: Redis, prefix: str, task: Any
) -> None:
    before = await keys_of(redis, prefix)
    with pytest.raises(InvalidInputError, match="task"):
        await session.run(task)
    with pytest.raises(InvalidInputError, match="task"):
        await session.follow_up(task)
    assert await keys_of(redis, prefix) == before


async def test_a_task_over_the_limit_stores_nothing(
    session: Session, redis: Redis, prefix: str
) -> None:
    before = await keys_of(redis, prefix)
    with pytest.raises(PayloadTooLargeError, match=r"20001 bytes, over the limit of 20000"):
        await session.run("x" * 20_001)
    assert await keys_of(redis, prefix) == before


@pytest.mark.parametrize("key", ["", "  ", "k" * 257, "\udfff", 7])
async def test_a_bad_idempotency_key_is_refused(session: Session, key: Any) -> None:
    with pytest.raises(InvalidInputError, match="idempotency key"):
        await session.run("hello", idempotency_key=key)


@pytest.mark.parametrize("version", ["", "1 2", "v" * 129, 1])
async def test_a_bad_version_is_refused(session: Session, version: Any) -> None:
    with pytest.raises(InvalidInputError, match="version"):
        await session.run("hello", version=version)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "x" * 129, "ä", "@control", None, 3])
async def test_a_bad_name_is_refused(client: Client, name: Any) -> None:
    with pytest.raises(InvalidInputError, match="session id"):
        client.session(name)
    with pytest.raises(InvalidInputError, match="branch"):
        client.session("s", branch=name)
    if name is not None:
        with pytest.raises(InvalidInputError, match="agent"):
            client.session("s", agent=name)


async def test_an_unknown_failure_policy_is_refused(session: Session) -> None:
    policy: Any = "perhaps"
    with pytest.raises(InvalidInputError, match="discard, continue"):
        await session.follow_up("more", failure_policy=policy)


async def test_runs_of_a_lane_wait_for_each_other(session: Session, worker: HandWorker) -> None:
    first, second = await session.run("one"), await session.run("two")
    held = await worker.begin()
    assert held.lease.run_id == first.run_id
    status = await session.status()
    assert (status.active_run, status.waiting) == (first.run_id, 1)
    await held.finish()
    assert (await worker.begin()).lease.run_id == second.run_id


async def test_branches_run_at_the_same_time(session: Session) -> None:
    main = await session.run("one")
    draft = await session.fork(name="draft")
    other = await draft.run("two")
    assert other.branch_id == "draft"
    assert (await session.status()).active_run == main.run_id
    assert (await draft.status()).active_run == other.run_id


async def test_a_follow_up_comes_before_what_waits(session: Session, worker: HandWorker) -> None:
    await session.run("one")
    held = await worker.begin()
    waiting = await session.run("three")
    following = await session.follow_up("two")
    status = await session.status()
    assert (status.follow_ups, status.waiting) == (1, 1)
    await held.finish()
    assert (await worker.complete()).lease.run_id == following.run_id
    assert (await worker.complete()).lease.run_id == waiting.run_id


async def test_a_follow_up_needs_an_active_run(
    client: Client, session: Session, worker: HandWorker
) -> None:
    with pytest.raises(FollowUpRejectedError, match="agent_idle") as refused:
        await session.follow_up("more")
    assert refused.value.receipt.status is ControlStatus.AGENT_IDLE
    with pytest.raises(UnknownSessionError):
        await client.session("s1").follow_up("more")


@pytest.mark.parametrize(
    ("policy", "state"),
    [
        (FollowUpFailurePolicy.DISCARD, RunState.CANCELLED),
        (FollowUpFailurePolicy.CONTINUE, RunState.QUEUED),
    ],
)
async def test_a_follow_up_after_a_failure(
    session: Session, worker: HandWorker, policy: FollowUpFailurePolicy, state: RunState
) -> None:
    await session.run("one")
    held = await worker.begin()
    handle = await session.follow_up("two", failure_policy=policy)
    await held.finish("no", stop_reason=StopReason.RUNTIME_ERROR)
    assert (await handle.status()).state is state


async def test_continue_goes_on_after_an_end_that_allows_it(
    session: Session, worker: HandWorker
) -> None:
    await session.run("one")
    await (await worker.begin()).finish("no", stop_reason=StopReason.MAX_STEPS)
    handle = await session.continue_run()
    assert (await handle.status()).intent == "continue"


async def test_continue_is_refused_with_the_reason(session: Session, worker: HandWorker) -> None:
    with pytest.raises(ContinueRejectedError) as refused:
        await session.continue_run()
    assert refused.value.reason is ContinueRejectedReason.NO_PREVIOUS_RUN
    handle = await session.run("one")
    with pytest.raises(ContinueRejectedError) as refused:
        await session.continue_run()
    assert refused.value.reason is ContinueRejectedReason.AGENT_ACTIVE
    assert refused.value.run_id == handle.run_id
    await (await worker.begin()).finish("no", stop_reason=StopReason.PROVIDER_AUTH)
    with pytest.raises(ContinueRejectedError, match="unsupported_stop_reason"):
        await session.continue_run()


async def test_the_server_must_be_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.delenv("RUNLANE_REDIS_URL", raising=False)
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    with pytest.raises(InvalidInputError, match="RUNLANE_REDIS_URL"):
        await Client.connect()


async def test_the_server_is_named_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, redis_url: str, prefix: str
) -> None:
    monkeypatch.setenv("RUNLANE_REDIS_URL", redis_url)
    monkeypatch.setenv("RUNLANE_PREFIX", prefix)
    async with await Client.connect() as client:
        assert [info async for info in client.sessions()] == []


async def test_a_url_that_is_none_does_not_show_its_password() -> None:
    with pytest.raises(InvalidInputError) as refused:
        await Client.connect("redis://:geheim/1@host:6379", settings=Settings())
    assert "geheim" not in str(refused.value)


async def test_nobody_listens(unused_port: int) -> None:
    url = f"redis://:geheim@127.0.0.1:{unused_port}"
    with pytest.raises(ServerUnavailableError) as away:
        await Client.connect(url, settings=Settings(retry_s=0))
    assert "geheim" not in str(away.value)


async def test_a_prefix_of_another_layout_is_refused(
    redis: Redis, redis_url: str, prefix: str
) -> None:
    await redis.hset(f"{prefix}:{{p0}}:meta", "schema", "99")  # type: ignore[misc]
    with pytest.raises(ServerUnsuitableError, match="schema 99"):
        await Client.connect(redis_url, settings=Settings(prefix=prefix))
