"""Conversations that nobody had, the same for all systems; only Python itself is needed.

A turn of a conversation is: what the user said (300 bytes), the model's tool call (its words, 200
bytes, and its arguments, about 80), the tool's result (2,000 to 3,000 bytes) and the model's
answer (800 bytes). The texts are words, with a number in hexadecimal digits at every eighth place.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

USER_BYTES: Final = 300
WORDS_BYTES: Final = 200
RESULT_BYTES: Final = (2000, 3000)
ANSWER_BYTES: Final = 800
TOOL: Final = "read_file"

_VOCABULARY: Final = (
    "the agent should inspect file then call tool search with query result returned value error "
    "trace line function def return import class token stream session worker redis branch head "
    "revision lease order customer invoice address delivery refund because please thanks"
)
_WORDS: Final = _VOCABULARY.split()
_NUMBER_EVERY: Final = 8


@dataclass(frozen=True)
class Turn:
    """What was said between two questions of the user.

    Attributes:
        user: The question.
        words: What the model said with its tool call.
        call_id: The tool call.
        arguments: Its arguments as JSON text.
        result: What the tool returned.
        answer: What the model made of it.
    """

    user: str
    words: str
    call_id: str
    arguments: str
    result: str
    answer: str

    @property
    def payload_bytes(self) -> int:
        """Size of all of it, without anything that a system adds."""
        texts = (self.user, self.words, self.call_id, self.arguments, self.result, self.answer)
        return sum(len(text.encode()) for text in texts)


def conversation(seed: int = 1) -> Iterator[Turn]:
    """Yield turns without end; the same seed gives the same ones."""
    rng = random.Random(seed)
    while True:
        arguments = {"path": f"/srv/data/{text(40, rng)}", "limit": rng.randrange(5000)}
        yield Turn(
            user=text(USER_BYTES, rng),
            words=text(WORDS_BYTES, rng),
            call_id=f"call_{rng.getrandbits(96):024x}",
            arguments=json.dumps(arguments),
            result=text(rng.randint(*RESULT_BYTES), rng),
            answer=text(ANSWER_BYTES, rng),
        )


def text(size: int, rng: random.Random) -> str:
    """Return `size` bytes of words."""
    words: list[str] = []
    length = 0
    while length <= size:
        numbered = not (len(words) + 1) % _NUMBER_EVERY
        word = f"{rng.getrandbits(32):x}" if numbered else rng.choice(_WORDS)
        words.append(word)
        length += len(word) + 1
    return " ".join(words)[:size]
