"""Peers: environments that can or cannot be had, and processes that answer."""

from pathlib import Path

import pytest
from bench.lab import BenchError
from bench.peers.environment import Needs, PeerAbsentError, environment_of
from bench.peers.process import Peers

ECHO = """
from bench.peers.answering import answer

def echo(word, times=1):
    return [word] * times

def end():
    raise SystemExit(3)

answer({"echo": echo, "end": end})
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared by the tests of this file: an environment takes seconds to make."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Needs:
    """A peer that needs no package, and says what it was told."""
    (tmp_path / "echo_peer.py").write_text(ECHO)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return Needs("echo_peer", (), (3, 11))


async def test_a_peer_answers_one_question_after_another(echo: Needs) -> None:
    async with Peers() as peers:
        peer = await peers.open(echo, "echo")
        assert peer is not None
        assert await peer.ask("echo", word="a") == ["a"]
        assert await peer.ask("echo", word="b", times=2) == ["b", "b"]
        assert peers.absent == {}


async def test_a_peer_that_ends_ends_the_bench(echo: Needs) -> None:
    async with Peers() as peers:
        peer = await peers.open(echo, "echo")
        assert peer is not None
        with pytest.raises(BenchError, match="echo ended at 'end'"):
            await peer.ask("end")


async def test_a_peer_that_cannot_be_had_is_absent_under_each_of_its_names() -> None:
    async with Peers() as peers:
        assert await peers.open(Needs("echo_peer", (), (9, 0)), "one", "other") is None
        why = "it needs Python 9.0 or newer; none was found"
        assert peers.absent == {"one": why, "other": why}


def test_an_environment_is_made_once(echo: Needs) -> None:
    python = environment_of(echo)
    made = python.parent.parent / "pyvenv.cfg"
    made_at = made.stat().st_mtime_ns
    assert environment_of(echo) == python
    assert made.stat().st_mtime_ns == made_at


def test_what_was_left_half_made_is_made_anew(echo: Needs) -> None:
    python = environment_of(echo)
    (python.parent.parent / "complete").unlink()
    python.unlink()
    assert environment_of(echo) == python
    assert python.exists()


def test_packages_that_cannot_be_installed_are_named(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    with pytest.raises(PeerAbsentError, match=rf"`pip install {nowhere}` failed"):
        environment_of(Needs("echo_peer", (nowhere,), (3, 11)))
