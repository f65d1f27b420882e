import io
from pathlib import Path

import pytest
from rich.console import Console
from tests.models.support import KEY

from runlane.journal.errors import InvalidInputError
from runlane.worker.models import ModelConfig

GIVEN = {"CHAT_MODEL": "m", "MODEL_API_KEY": KEY, "MODEL_URL": "https://api.example.com/v1"}


def test_three_variables_are_enough() -> None:
    assert ModelConfig.from_env(GIVEN) == ModelConfig(
        model="m",
        api_key=KEY,
        base_url="https://api.example.com/v1",
        timeout_s=60,
        temperature=0.7,
        include_usage=True,
    )


def test_all_variables_are_read() -> None:
    tuned = {"LLM_TIMEOUT": "5", "LLM_TEMPERATURE": "0", "LLM_INCLUDE_USAGE": "false"}
    config = ModelConfig.from_env(GIVEN | tuned)
    assert (config.timeout_s, config.temperature, config.include_usage) == (5, 0.0, False)


def test_the_environment_wins_over_dotenv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{name}={value}" for name, value in (GIVEN | {"LLM_TIMEOUT": "5"}).items()]
    (tmp_path / ".env").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    for name in GIVEN:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CHAT_MODEL", "of the environment")
    config = ModelConfig.from_env()
    assert (config.model, config.api_key, config.timeout_s) == ("of the environment", KEY, 5)
    assert ModelConfig.present()


@pytest.mark.parametrize("name", GIVEN)
def test_what_is_missing_is_named(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"not set: {name}") as error:
        ModelConfig.from_env(GIVEN | {name: ""})
    assert KEY not in str(error.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LLM_TIMEOUT", "0"),
        ("LLM_TIMEOUT", "1.5"),
        ("LLM_TIMEOUT", "soon"),
        ("LLM_TEMPERATURE", "nan"),
        ("LLM_TEMPERATURE", "2.1"),
        ("LLM_INCLUDE_USAGE", "maybe"),
        ("MODEL_URL", "api.example.com"),
        ("MODEL_URL", "ftp://api.example.com"),
        ("MODEL_URL", "http://api.example.com:port"),
        ("MODEL_URL", "http://[::1"),
        ("MODEL_URL", f"https://user:{KEY}@api.example.com"),
        ("MODEL_API_KEY", f"{KEY}\nX-Other: header"),
        ("MODEL_API_KEY", f"{KEY}é"),
    ],
)
def test_what_is_wrong_is_named_and_no_key_shown(name: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=name) as error:
        ModelConfig.from_env(GIVEN | {name: value})
    assert KEY not in str(error.value)


def test_a_config_made_by_hand_is_checked_as_well() -> None:
    with pytest.raises(InvalidInputError, match="MODEL_URL"):
        ModelConfig(model="m", api_key=KEY, base_url="nonsense")


def test_no_repr_shows_the_key() -> None:
    config = ModelConfig.from_env(GIVEN)
    console = Console(file=io.StringIO(), width=200)
    console.print(config, [config])
    assert isinstance(console.file, io.StringIO)
    shown = f"{config} {config!r} {[config]} {console.file.getvalue()} {config.label}"
    assert "api.example.com" in shown
    assert KEY not in shown


@pytest.mark.parametrize(
    ("environ", "present"),
    [
        ({}, False),
        ({"LLM_TIMEOUT": "5"}, False),
        ({"MODEL_URL": ""}, False),
        ({"CHAT_MODEL": "m"}, True),
        (GIVEN, True),
    ],
)
def test_a_model_is_present_once_one_of_the_three_is_set(
    environ: dict[str, str], present: bool
) -> None:
    assert ModelConfig.present(environ) is present
