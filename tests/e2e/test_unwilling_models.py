"""A provider that is away, refuses, or repeats the secret key in what it says."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import pytest
from redis.asyncio import Redis
from tests.checkers.keyspace import READ
from tests.conftest import bundled_binary
from tests.e2e.harness import Fleet
from tests.e2e.observing import Story, check_rest, hearing
from tests.e2e.waiting import DEADLINE_S

from runlane.journal.link import client_for
from runlane.journal.server import Server, launch
from runlane.producer import Client, RunStatus, Settings, StopReason
from runlane.worker.testing.model_server import ModelServer
from runlane.worker.testing.process import scripted_model
from runlane.worker.testing.script import ChatRequest, HttpFault, Reply

KEY: Final = "sk-planted-4f1d9c"
PASSWORD: Final = "pw-planted-8a2e7b"


async def test_a_model_that_is_away_fails_the_run_in_clear_words_and_the_worker_goes_on(
    server: Server, prefix: str, tmp_path: Path
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    model = {
        "MODEL_URL": f"http://127.0.0.1:{port}/v1",
        "MODEL_API_KEY": "k",
        "CHAT_MODEL": "away",
    }
    settings = Settings(redis_url=server.url, prefix=prefix)
    with Fleet(server.url, prefix, tmp_path, model) as fleet:
        worker = await fleet.start()
        async with await Client.connect(settings=settings) as client:
            session = client.session("s", agent="clerk")
            failed = await session.run("hi")
            result = await failed.result(DEADLINE_S)
            assert result.status is RunStatus.FAILED
            assert result.stop_reason is StopReason.PROVIDER_ERROR
            assert f"model away at 127.0.0.1:{port}: the connection failed" in (result.error or "")
            with scripted_model(port=port):
                again = await session.continue_run()
                assert (await again.result(DEADLINE_S)).output == "echo: hi"
            assert (await Story.read(client, "s")).end(failed.run_id).result == result
        assert worker.alive
        await check_rest(fleet)


def tactless(request: ChatRequest) -> Reply:
    """Repeat the key in every possible place."""
    key = request.headers["authorization"]
    said = str(request.messages[-1]["content"])
    if not said.isdecimal():
        return Reply(text="partial answer", fault="error") if said == "broken" else Reply(text="ok")
    error = {"message": f"incorrect key {key}", "type": key, "param": key, "code": "wrong_key"}
    return Reply(fault=HttpFault(status=int(said), body={"error": error}, headers={"x-key": key}))


@pytest.fixture
def locked_server(tmp_path: Path) -> Iterator[Server]:
    with launch(tmp_path / "locked", binary=bundled_binary()) as running:
        yield running


@pytest.fixture
async def locked_url(locked_server: Server) -> str:
    async with client_for(locked_server.url) as redis:
        await cast("Any", redis).config_set("requirepass", PASSWORD)
    return locked_server.url.replace("redis://", f"redis://:{PASSWORD}@")


async def test_no_secret_is_kept_or_told_whatever_the_provider_says(
    locked_server: Server, locked_url: str, prefix: str, tmp_path: Path
) -> None:
    settings = Settings(redis_url=locked_url, prefix=prefix)
    async with ModelServer(tactless) as provider:
        model = {"MODEL_URL": provider.url, "MODEL_API_KEY": KEY, "CHAT_MODEL": "tactless"}
        with Fleet(locked_url, prefix, tmp_path, model) as fleet:
            worker = await fleet.start(log_level="debug")
            async with await Client.connect(settings=settings) as client:
                session = client.session("s", agent="clerk")
                async with hearing(fleet, session) as heard:
                    for said, reason in (
                        ("401", StopReason.PROVIDER_AUTH),
                        ("500", StopReason.PROVIDER_ERROR),
                        ("429", StopReason.RATE_LIMITED),
                        ("broken", StopReason.PROVIDER_ERROR),
                        ("hi", StopReason.TEXT_RESPONSE),
                    ):
                        handle = await session.run(said)
                        result = await handle.result(DEADLINE_S)
                        assert result.stop_reason is reason
                        await heard.until_ended(handle.run_id)
                story = await Story.read(client, "s")
            await check_rest(fleet)
            async with client_for(locked_url) as redis:
                kept = await _everything(redis)
            worker.terminate()
            assert await worker.ended() == 0
            told = [worker.text, msgspec.json.encode([heard.events, story.records]).decode(), kept]
            for text in told:
                assert len(text) > 100
                assert KEY not in text
                assert PASSWORD not in text


async def _everything(redis: Redis) -> str:
    """Return every key and value of the server, as text."""
    plain = cast("Any", redis)
    found: list[Any] = []
    async for key in plain.scan_iter(count=1000):
        kind: bytes = await plain.type(key)
        found.append((key, await READ[kind.decode()](plain, key.decode())))
    return repr(found)
