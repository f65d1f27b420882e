import pytest
from hypothesis import given, settings
from tests.tools.support import NASTY_TEXT

from runlane.worker.tools.texts import DESCRIPTION_BYTES_MAX, cut, describe, storable


class MuteError(Exception):
    def __init__(self, why: BaseException) -> None:
        self.why = why

    def __str__(self) -> str:
        raise self.why


@given(text=NASTY_TEXT)
@settings(deadline=None)
def test_an_exception_is_described_by_its_storable_text_or_else_by_its_type(text: str) -> None:
    error = ValueError(text)
    assert describe(error) == (storable(text) or "ValueError")
    assert describe(error, typed=True) == (
        f"ValueError: {storable(text)}" if text else "ValueError"
    )


@pytest.mark.parametrize("why", [LookupError("no words"), SystemExit(1), GeneratorExit()])
def test_an_exception_that_cannot_give_its_text_is_described_by_its_type(
    why: BaseException,
) -> None:
    assert describe(MuteError(why)) == describe(MuteError(why), typed=True) == "MuteError"


def test_a_description_is_bounded() -> None:
    described = describe(ValueError("é\ud800" * 1_000_000))
    assert described == cut("é\ufffd" * 1_000_000, DESCRIPTION_BYTES_MAX)
    assert len(described.encode()) < DESCRIPTION_BYTES_MAX + 96
