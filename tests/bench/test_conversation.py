"""The conversation that all systems hold."""

import json
import random
from itertools import islice

from bench.conversation import (
    ANSWER_BYTES,
    RESULT_BYTES,
    USER_BYTES,
    WORDS_BYTES,
    conversation,
    text,
)


def test_a_text_has_exactly_its_size() -> None:
    assert [len(text(size, random.Random(1)).encode()) for size in (1, 7, 2048)] == [1, 7, 2048]


def test_every_system_hears_the_same_words() -> None:
    assert list(islice(conversation(), 3)) == list(islice(conversation(), 3))
    assert list(islice(conversation(2), 3)) != list(islice(conversation(), 3))


def test_turns_have_the_sizes_that_the_page_names() -> None:
    for turn in islice(conversation(), 50):
        assert [len(turn.user), len(turn.words), len(turn.answer)] == [
            USER_BYTES,
            WORDS_BYTES,
            ANSWER_BYTES,
        ]
        assert RESULT_BYTES[0] <= len(turn.result) <= RESULT_BYTES[1]
        assert set(json.loads(turn.arguments)) == {"path", "limit"}
        assert turn.payload_bytes == sum(
            map(
                len, (turn.user, turn.words, turn.call_id, turn.arguments, turn.result, turn.answer)
            )
        )
