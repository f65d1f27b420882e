"""What a log line may hold."""

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from runlane.observability.logs import TRACEBACK_CHARS_MAX, configure_logs


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def fail(message: str) -> None:
    api_key = "sk-planted-secret"
    assert api_key
    raise ConnectionError(message)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    "logger", [logging.getLogger("some.library"), structlog.get_logger("ours")]
)
def test_a_traceback_shows_no_values_of_variables_and_is_bounded(
    logger: logging.Logger, as_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(level="info", json=as_json)
    try:
        fail("x" * 1_000_000)
    except ConnectionError:
        logger.exception("it_failed")
    shown = capsys.readouterr().err
    assert "it_failed" in shown
    assert "in fail" in shown
    assert "sk-planted-secret" not in shown.replace('api_key = "sk-planted-secret"', "")
    assert len(shown) < 2 * TRACEBACK_CHARS_MAX


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(level="info", json=True)
    structlog.get_logger("ours").info("run_ended", run_id="r")
    logging.getLogger("lib").warning("careful")
    events = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert events == ["run_ended", "careful"]


def test_a_level_hides_what_is_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(level="warning", json=True)
    structlog.get_logger("ours").info("hidden")
    assert not capsys.readouterr().err
    with pytest.raises(ValueError, match="loud"):
        configure_logs(level="loud", json=True)
