"""Settings: from where they come, and what is said about a bad one."""

from pathlib import Path
from typing import Any

import pytest

from runlane.journal.errors import InvalidInputError
from runlane.journal.settings import Settings, load_settings


def test_without_anything_they_are_the_defaults() -> None:
    assert load_settings({}) == Settings()


def test_the_environment_sets_each_of_them() -> None:
    environ = {
        "RUNLANE_REDIS_URL": "redis://example:6379/3",
        "RUNLANE_PREFIX": "other",
        "RUNLANE_RETRY_S": "1.5",
        "RUNLANE_MAX_RUNS": "7",
        "RUNLANE_LOG_JSON": "true",
    }
    assert load_settings(environ) == Settings(
        redis_url="redis://example:6379/3", prefix="other", retry_s=1.5, max_runs=7, log_json=True
    )


def test_an_override_wins_and_none_is_no_override() -> None:
    environ = {"RUNLANE_PREFIX": "env", "RUNLANE_MAX_RUNS": "7"}
    loaded = load_settings(environ, prefix="given", max_runs=None)
    assert (loaded.prefix, loaded.max_runs) == ("given", 7)


def test_an_empty_variable_counts_as_unset() -> None:
    assert load_settings({"RUNLANE_MAX_RUNS": "", "RUNLANE_REDIS_URL": ""}) == Settings()


def test_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("RUNLANE_PREFIX=file\nRUNLANE_MAX_RUNS=3\nOTHER=x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUNLANE_PREFIX", "env")
    monkeypatch.delenv("RUNLANE_MAX_RUNS", raising=False)
    loaded = load_settings()
    assert (loaded.prefix, loaded.max_runs) == ("env", 3)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("RUNLANE_MAX_RUNS", "0"),
        ("RUNLANE_MAX_RUNS", "10001"),
        ("RUNLANE_MAX_RUNS", "many"),
        ("RUNLANE_MAX_RUNS", "1.5"),
        ("RUNLANE_RETRY_S", "-1"),
        ("RUNLANE_RETRY_S", "nan"),
        ("RUNLANE_LEASE_MS", "499"),
        ("RUNLANE_PAYLOAD_BYTES_MAX", "1023"),
        ("RUNLANE_IDEMPOTENCY_S", "0"),
        ("RUNLANE_CRASHES_MAX", "0"),
        ("RUNLANE_CRASHES_TOTAL_MAX", "1001"),
        ("RUNLANE_LOG_JSON", "perhaps"),
        ("RUNLANE_PREFIX", "a:b"),
    ],
)
def test_a_bad_value_is_refused_with_the_name_of_its_variable(variable: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=variable):
        load_settings({variable: value})


@pytest.mark.parametrize("override", [{"max_runs": 0}, {"prefix": "a b"}], ids=str)
def test_a_bad_override_is_refused_too(override: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        load_settings({}, **override)


def test_a_bad_value_never_shows_a_password() -> None:
    environ = {"RUNLANE_REDIS_URL": "redis://:s3cret@example", "RUNLANE_MAX_RUNS": "0"}
    with pytest.raises(InvalidInputError) as refused:
        load_settings(environ)
    assert "s3cret" not in str(refused.value)
