"""How often in a row the same call came."""

import json

from hypothesis import given
from hypothesis import strategies as st

from runlane.journal.repeats import Repeated, count_repeats, signature_of
from runlane.journal.wire.messages import ModelToolCall

ARGUMENTS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 2) | st.text("é a", max_size=2))
CALLS = st.lists(
    st.builds(
        ModelToolCall,
        id=st.sampled_from(["1", "2"]),
        name=st.sampled_from(["look", "pay"]),
        arguments=st.sampled_from(["{}", '{"a":1}', '{ "a": 1 }', "{", "[1]"]),
    ),
    max_size=12,
)


def meant(call: ModelToolCall) -> tuple[str, str]:
    try:
        return call.name, json.dumps(json.loads(call.arguments), sort_keys=True)
    except ValueError:
        return call.name, call.arguments


@given(calls=CALLS, cut=st.integers(0, 12))
def test_each_call_counts_those_before_it_that_are_the_same(
    calls: list[ModelToolCall], cut: int
) -> None:
    """Wherever the list is cut into responses."""
    first, between = count_repeats(Repeated(), calls[:cut])
    second, _ = count_repeats(between, calls[cut:])
    expected: list[int] = []
    for index, call in enumerate(calls):
        same = index > 0 and meant(call) == meant(calls[index - 1])
        expected.append(expected[-1] + 1 if same else 1)
    assert first + second == expected


@given(ARGUMENTS, st.randoms())
def test_neither_order_nor_space_makes_another_call(
    arguments: dict[str, object], random: object
) -> None:
    turned = dict(reversed(arguments.items()))
    first = ModelToolCall("1", "look", json.dumps(arguments))
    second = ModelToolCall("2", "look", json.dumps(turned, indent=2, ensure_ascii=False))
    assert signature_of(first) == signature_of(second)


def test_text_that_is_no_json_is_compared_as_it_is() -> None:
    deep = "[" * 100_000
    for text in ("{", '{"a": NaN}', "", deep):
        assert signature_of(ModelToolCall("1", "a", text)) == signature_of(
            ModelToolCall("2", "a", text)
        )
    assert signature_of(ModelToolCall("1", "a", "{")) != signature_of(ModelToolCall("1", "a", "{ "))
    assert signature_of(ModelToolCall("1", "a", "")) != signature_of(ModelToolCall("1", "b", ""))
