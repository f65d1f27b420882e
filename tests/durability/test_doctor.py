"""`runlane doctor` against real servers: it never says more than is so, and changes nothing."""

import json
import os
import socket
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from tests.durability.replicas import asking, running, sentinels

from runlane.journal.archive import FileStore
from runlane.journal.archive.paths import MARKER
from runlane.journal.partition import PARTITIONS, SCHEMA
from runlane.journal.server import Server, launch
from runlane.producer.cli import cli

PASSWORD = "s3cret"
MADE_WITH = {"schema": SCHEMA, "partitions": PARTITIONS, "deployment": "d1"}


class Outcome(NamedTuple):
    code: int
    report: dict[str, Any]
    text: str

    @property
    def errors(self) -> list[str]:
        return self._of("error")

    @property
    def warnings(self) -> list[str]:
        return self._of("warning")

    def _of(self, status: str) -> list[str]:
        return [
            f"{each['subject']}: {each['text']}"
            for each in self.report["findings"]
            if each["status"] == status
        ]


def doctor(
    url: str, durability: str = "local", prefix: str = "unused", archive: str = ""
) -> Outcome:
    """Run the command twice: for people, and for scripts."""
    environ = {name: "" for name in os.environ if name.startswith("RUNLANE_")}
    environ |= {"RUNLANE_DURABILITY": durability, "RUNLANE_PREFIX": prefix}
    environ |= {"RUNLANE_ARCHIVE": archive} if archive else {}
    words = ["doctor", "--redis-url", url]
    for_people = CliRunner().invoke(cli, words, env=environ)
    for_scripts = CliRunner().invoke(cli, [*words, "--json"], env=environ)
    assert for_people.exit_code == for_scripts.exit_code
    text = for_people.output
    assert PASSWORD not in text + for_scripts.output
    report: dict[str, Any] = json.loads(for_scripts.stdout or "{}")
    return Outcome(for_people.exit_code, report, text)


@pytest.fixture(scope="module")
def own_server(any_binary: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with launch(tmp_path_factory.mktemp("doctor"), binary=any_binary) as server:
        yield server


@contextmanager
def configured(server: Server, **values: str) -> Generator[None, None, None]:
    with asking(server.port) as redis:
        before = {name: redis.config_get(name)[name] for name in values}
        try:
            for name, value in values.items():
                redis.config_set(name, value)
            yield
        finally:
            for name, value in before.items():
                redis.config_set(name, value)


def test_our_own_server_keeps_the_first_level(own_server: Server) -> None:
    outcome = doctor(own_server.url)
    assert (outcome.code, outcome.report["level"], outcome.errors) == (0, "local", [])
    assert outcome.warnings == ["workers: none is live: accepted runs wait"]
    assert outcome.report["survives"] == {
        "process_crash": "loses nothing that was acknowledged",
        "power_cut": "can lose up to about 2 s of acknowledged writes",
        "failover": "there is none: everything waits until this server is back",
        "partition": "clients that are cut off wait; it loses nothing",
    }
    for promise in outcome.report["survives"].values():
        assert promise in " ".join(outcome.text.split())


def test_nothing_is_changed(own_server: Server) -> None:
    doctor(own_server.url)
    with asking(own_server.port) as redis:
        assert redis.keys("unused*") == []


def test_syncing_each_write_is_said_to_survive_a_power_cut(own_server: Server) -> None:
    with configured(own_server, appendfsync="always"):
        strict = doctor(own_server.url, "local-strict")
        modest = doctor(own_server.url, "local")
    assert (strict.code, strict.report["level"]) == (0, "local-strict")
    assert strict.report["survives"]["power_cut"].startswith("loses nothing, if the disk")
    assert (modest.code, modest.report["level"]) == (0, "local")
    assert "local-strict would be kept too" in modest.text


@pytest.mark.parametrize(
    ("values", "durability", "level", "power_cut", "error"),
    [
        ({"appendfsync": "everysec"}, "local-strict", "local", "2 s", "appendfsync is everysec"),
        ({"appendfsync": "no"}, "local", "none", "30 s", "appendfsync is no"),
        (
            {"appendfsync": "always", "no-appendfsync-on-rewrite": "yes"},
            "local-strict",
            "local",
            "30 s of acknowledged writes while",
            "while the append-only file is rewritten",
        ),
        ({"appendonly": "no"}, "local", "none", "loses everything", "append-only file is off"),
        ({"appendonly": "no"}, "local-strict", "none", "loses everything", "file is off"),
    ],
    ids=str,
)
def test_a_level_that_the_server_does_not_keep_is_an_error(
    own_server: Server,
    values: dict[str, str],
    durability: str,
    level: str,
    power_cut: str,
    error: str,
) -> None:
    with configured(own_server, **values):
        outcome = doctor(own_server.url, durability)
    assert (outcome.code, outcome.report["level"]) == (1, level)
    assert power_cut in outcome.report["survives"]["power_cut"]
    assert error in " ".join(outcome.errors)


@pytest.mark.parametrize("durability", ["ha", "ha-acked", "ha-all"])
def test_a_lone_server_keeps_no_level_that_needs_replicas(
    own_server: Server, durability: str
) -> None:
    outcome = doctor(own_server.url, durability)
    assert (outcome.code, outcome.report["level"]) == (1, "local")
    assert "no replica is in step" in " ".join(outcome.errors)


def test_replicas_without_sentinel_are_not_taken_for_a_failover(trio: list[Server]) -> None:
    outcome = doctor(trio[0].url, "ha-acked")
    assert (outcome.code, outcome.report["level"]) == (0, "local")
    assert "cannot be established" in " ".join(outcome.warnings)
    assert "is lost" in outcome.report["survives"]["failover"]


def test_a_replica_is_no_server_to_write_to(trio: list[Server]) -> None:
    outcome = doctor(trio[1].url)
    assert (outcome.code, outcome.report["level"]) == (1, "none")
    assert "is a replica" in " ".join(outcome.errors)
    assert all("a replica" in promise for promise in outcome.report["survives"].values())


def test_a_server_that_evicts_is_an_error(own_server: Server) -> None:
    with configured(own_server, **{"maxmemory-policy": "allkeys-lru"}):
        outcome = doctor(own_server.url)
    assert outcome.code == 1
    (error,) = outcome.errors
    assert error.startswith("memory: maxmemory-policy is allkeys-lru")


def test_what_costs_memory_is_a_warning(own_server: Server) -> None:
    values = {
        "stream-node-max-bytes": "4096",
        "client-output-buffer-limit": "pubsub 33554432 8388608 60",
    }
    with configured(own_server, **values):
        outcome = doctor(own_server.url)
    assert outcome.code == 0
    assert [warning.partition(":")[0] for warning in outcome.warnings] == [
        "streams",
        "subscribers",
        "workers",
    ]


def test_a_server_that_is_nearly_full_is_a_warning(own_server: Server) -> None:
    with asking(own_server.port) as redis:
        used = redis.info("memory")["used_memory"]
    with configured(own_server, maxmemory=str(int(used * 1.1))):
        outcome = doctor(own_server.url)
    assert any("of maxmemory are in use" in warning for warning in outcome.warnings)


def test_a_server_that_is_full_is_an_error(own_server: Server) -> None:
    with configured(own_server, maxmemory=str(1024 * 1024)):
        outcome = doctor(own_server.url)
    assert outcome.code == 1
    assert any("of maxmemory are in use" in error for error in outcome.errors)


def test_a_server_that_lacks_the_replicas_it_asks_for_is_an_error(own_server: Server) -> None:
    with configured(own_server, **{"min-replicas-to-write": "1"}):
        outcome = doctor(own_server.url)
    assert outcome.code == 1
    assert any("the server refuses every write" in error for error in outcome.errors)


def test_what_a_user_may_not_see_is_unknown(own_server: Server) -> None:
    with asking(own_server.port) as redis:
        redis.execute_command(
            *("ACL", "SETUSER", "guest", "on", f">{PASSWORD}", "~*", "&*", "+@all", "-config")
        )
    url = own_server.url.replace("//", f"//guest:{PASSWORD}@")
    unseen_by(lambda level: doctor(url, level))


def unseen_by(look: Callable[[str], Outcome]) -> None:
    outcome = look("local")
    assert (outcome.code, outcome.report["level"]) == (0, "unknown")
    assert outcome.report["facts"]["config"] is None
    assert "an unknown amount" in outcome.report["survives"]["power_cut"]
    assert [warning.partition(":")[0] for warning in outcome.warnings] == [
        "durability",
        "streams",
        "subscribers",
        "workers",
    ]
    assert look("local-strict").report["level"] == "unknown"


def test_a_configuration_that_nobody_may_read_is_unknown(any_binary: Path, tmp_path: Path) -> None:
    with running(any_binary, tmp_path, "--rename-command", "CONFIG", "") as url:
        unseen_by(lambda level: doctor(url, level))


def test_one_thing_that_is_certain_makes_the_level_certain(
    any_binary: Path, tmp_path: Path
) -> None:
    options = ("--rename-command", "CONFIG", "", "--appendonly", "no")
    with running(any_binary, tmp_path, *options) as url:
        outcome = doctor(url)
    assert (outcome.code, outcome.report["level"]) == (1, "none")


def test_a_wrong_password_is_said_and_not_shown(own_server: Server) -> None:
    with asking(own_server.port) as redis:
        redis.execute_command("ACL", "SETUSER", "locked", "on", ">other", "~*", "&*", "+@all")
    outcome = doctor(own_server.url.replace("//", f"//locked:{PASSWORD}@"))
    assert outcome.code == 3
    assert "RUNLANE_REDIS_URL" in outcome.text


def test_a_server_that_is_away_has_a_code_of_its_own() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    assert doctor(f"redis://127.0.0.1:{port}").code == 3
    assert doctor(f"redis+sentinel://127.0.0.1:{port}/m1/0").code == 3


def test_sentinels_and_replicas_keep_what_the_highest_level_asks_for(
    trio: list[Server], any_binary: Path, tmp_path: Path
) -> None:
    with sentinels(tmp_path, binary=any_binary, master=trio[0]) as watching:
        plain, confirmed = (doctor(watching.url, level) for level in ("ha", "ha-acked"))
        assert (plain.code, plain.report["level"], plain.errors) == (0, "ha", [])
        assert (confirmed.code, confirmed.report["level"], confirmed.errors) == (0, "ha-acked", [])
        assert confirmed.report["facts"]["sentinel"]["known"] == 3
        acked = confirmed.report["survives"]
        assert "unless the replica that confirmed it is lost" in acked["failover"]
        assert "on the master's side" in acked["partition"]
        assert acked["process_crash"].startswith("is a failover")
        assert "all machines can lose up to about 2 s" in acked["power_cut"]

        weak = doctor(watching.url, "ha-all")
        assert (weak.code, weak.report["level"]) == (1, "ha-acked")
        assert "min-replicas-to-write is 0" in " ".join(weak.errors)
        assert weak.report["survives"] == acked
        with configured(trio[0], **{"min-replicas-to-write": "2"}):
            strong = doctor(watching.url, "ha-all")
        assert (strong.code, strong.report["level"]) == (0, "ha-all")

        beside = doctor(trio[0].url, "ha")
        assert "nobody follows it after a failover" in " ".join(beside.warnings)
        assert "until about 10 s after the end" in beside.report["survives"]["partition"]

        partly = doctor(watching.url.replace("//", "//127.0.0.1:1,"), "ha")
        assert "3 of the 4 Sentinels" in " ".join(partly.warnings)


def test_a_deployment_of_another_runlane_is_an_error(own_server: Server) -> None:
    with asking(own_server.port) as redis:
        redis.hset("newer:{p0}:meta", mapping={"schema": "9", "partitions": "1"})
    outcome = doctor(own_server.url, prefix="newer")
    assert outcome.code == 1
    assert "schema 9" in " ".join(outcome.errors)


def test_an_archive_that_only_others_know_is_an_error(own_server: Server, tmp_path: Path) -> None:
    with asking(own_server.port) as redis:
        redis.hset("kept:{p0}:meta", mapping={**MADE_WITH, "archive_claimed": "1"})
    outcome = doctor(own_server.url, prefix="kept")
    assert outcome.code == 1
    assert "an archive that this process does not know; set RUNLANE_ARCHIVE" in outcome.errors[0]
    nowhere = tmp_path / "nowhere"
    outcome = doctor(own_server.url, prefix="kept", archive=str(nowhere))
    assert outcome.code == 1
    assert "is empty, or was emptied" in outcome.errors[0]
    assert not nowhere.exists()


def test_the_archive_of_another_deployment_is_an_error(own_server: Server, tmp_path: Path) -> None:
    FileStore(tmp_path).put(MARKER, b"another")
    for claimed in ({}, {"archive_claimed": "1"}):
        with asking(own_server.port) as redis:
            redis.hset(f"{tmp_path.name}:{{p0}}:meta", mapping={**MADE_WITH, **claimed})
        outcome = doctor(own_server.url, prefix=tmp_path.name, archive=str(tmp_path))
        assert outcome.code == 1
        assert "belongs to deployment another" in outcome.errors[0]


def test_an_archive_of_its_own_and_a_new_one_are_fine(own_server: Server, tmp_path: Path) -> None:
    with asking(own_server.port) as redis:
        redis.hset(f"{tmp_path.name}:{{p0}}:meta", mapping=MADE_WITH)
        assert doctor(own_server.url, prefix=tmp_path.name, archive=str(tmp_path)).code == 0
        assert list(tmp_path.iterdir()) == [], "it is not claimed by looking at it"
        FileStore(tmp_path).put(MARKER, MADE_WITH["deployment"].encode())
        redis.hset(f"{tmp_path.name}:{{p0}}:meta", "archive_claimed", "1")
        assert doctor(own_server.url, prefix=tmp_path.name, archive=str(tmp_path)).code == 0
