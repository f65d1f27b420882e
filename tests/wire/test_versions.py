"""A stored type that changes: older bytes are read, newer ones refused, and nothing else costs."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from msgspec import Struct

from runlane.journal import lua
from runlane.journal.errors import UndecodableError
from runlane.journal.wire.bodies import Body
from runlane.journal.wire.codec import decode, decode_body, decode_job, decode_jump, encode
from runlane.journal.wire.jobs import AnyJob
from runlane.journal.wire.records import KINDS
from runlane.journal.wire.tree import Jump
from runlane.journal.wire.versions import (
    JOB_UPGRADES,
    JUMP_UPGRADES,
    RECORD_UPGRADES,
    TaggedDecoder,
    Versions,
    plain_name,
    stored_name,
)

LUA: Final = Path(lua.__file__).parent


class GiftGiven(Body, frozen=True, kw_only=True):
    """A record that was changed twice: one amount became several, and then they got a currency."""

    run_id: str
    amounts: tuple[int, ...]
    currency: str


def several(plain: dict[str, Any]) -> dict[str, Any]:
    return {"run_id": plain["run_id"], "amounts": [plain["amount"]]}


def with_currency(plain: dict[str, Any]) -> dict[str, Any]:
    return {**plain, "currency": "EUR"}


GIFTS: Final = Versions(
    "record kind", {"gift_given": GiftGiven}, {"gift_given": (several, with_currency)}
)
GIFT: Final = GiftGiven(run_id="r", amounts=(5,), currency="EUR")
STORED: Final[Mapping[str, dict[str, Any]]] = {
    "gift_given": {"run_id": "r", "amount": 5},
    "gift_given@2": {"run_id": "r", "amounts": [5]},
    "gift_given@3": {"run_id": "r", "amounts": [5], "currency": "EUR"},
}


@pytest.mark.parametrize("stored", STORED)
def test_bytes_of_every_version_become_the_current_type(stored: str) -> None:
    for unknown in ({}, {"field_of_tomorrow": 1}, {"text": "x" * 5000}):
        data = encode(STORED[stored] | unknown)
        assert decode(data, GIFTS.decoder(stored)) == GIFT


def test_the_current_version_is_written_and_read_without_a_detour() -> None:
    assert GIFTS.stored_name(GiftGiven) == "gift_given@3"
    assert type(GIFTS.decoder("gift_given@3")) is msgspec.msgpack.Decoder
    assert all(
        type(Versions("", KINDS, {}).decoder(kind)) is msgspec.msgpack.Decoder for kind in KINDS
    )


@pytest.mark.parametrize("stored", ["gift_given@4", "gift_given@1", "gift_given@", "gift", ""])
def test_what_is_newer_or_unknown_says_what_to_do(stored: str) -> None:
    with pytest.raises(UndecodableError, match="upgrade this process") as refused:
        GIFTS.decoder(stored)
    assert repr(stored) in str(refused.value)


@pytest.mark.parametrize(
    "damaged",
    [{}, {"run_id": "r"}, {"run_id": "r", "amount": "5"}, {"run_id": 1, "amount": 5}, [], 7, None],
)
def test_damaged_bytes_of_an_older_version_are_undecodable(damaged: Any) -> None:
    for data in (encode(damaged), encode(damaged)[:-1], b"\x28\xb5\x2f\xfd"):
        with pytest.raises(UndecodableError):
            decode(data, GIFTS.decoder("gift_given"))


def test_an_upgrade_that_cannot_go_on_names_what_is_damaged() -> None:
    with pytest.raises(UndecodableError, match="gift_given is damaged: KeyError"):
        decode(encode({"run_id": "r"}), GIFTS.decoder("gift_given"))


class Errand(Struct, frozen=True, tag_field="type", tag="errand@2"):
    """A job whose one word became many."""

    words: tuple[str, ...]


class Walk(Struct, frozen=True, tag_field="type", tag="walk"):
    """A job that never changed."""

    miles: int


def many_words(plain: dict[str, Any]) -> dict[str, Any]:
    return {"words": [plain["word"]]}


ERRANDS: Final[TaggedDecoder[Errand | Walk]] = TaggedDecoder(
    msgspec.msgpack.Decoder(Errand | Walk),
    Versions[Errand | Walk]("job", {"errand": Errand, "walk": Walk}, {"errand": (many_words,)}),
)


@pytest.mark.parametrize(
    ("plain", "job"),
    [
        ({"type": "errand", "word": "milk"}, Errand(("milk",))),
        ({"type": "errand@2", "words": ["milk"]}, Errand(("milk",))),
        ({"type": "walk", "miles": 3}, Walk(3)),
        ({"miles": 3, "field_of_tomorrow": None, "type": "walk"}, Walk(3)),
    ],
)
def test_what_names_itself_is_read_in_every_version(plain: dict[str, Any], job: Struct) -> None:
    assert decode(encode(plain), ERRANDS) == job
    assert decode(encode(job), ERRANDS) == job


@pytest.mark.parametrize(
    "plain",
    [
        *({"type": "errand@3", "words": []}, {"type": "swim"}, {"type": "errand", "words": []}),
        *({"type": "walk", "miles": "3"}, {"type": "walk"}, {"type": 7}, {}, [], None),
    ],
)
def test_what_names_itself_wrongly_is_undecodable(plain: Any) -> None:
    with pytest.raises(UndecodableError):
        decode(encode(plain), ERRANDS)


@pytest.mark.parametrize(
    ("read", "plain"),
    [
        (partial(decode_body, "run_started@2"), {}),
        (decode_job, {"type": "run@2"}),
        (decode_jump, {"type": "jump@2"}),
    ],
)
def test_a_newer_version_of_anything_stored_asks_for_a_newer_process(
    read: Callable[[bytes], object], plain: dict[str, str]
) -> None:
    with pytest.raises(UndecodableError, match=r"@2'.*upgrade this process"):
        read(encode(plain))


def test_tags_say_the_current_version() -> None:
    for types, upgrades in ((AnyJob.__args__, JOB_UPGRADES), ((Jump,), JUMP_UPGRADES)):
        for type_ in types:
            tag = str(type_.__struct_config__.tag)
            name = plain_name(tag)
            assert tag == stored_name(name, 1 + len(upgrades.get(name, ())))


def test_scripts_write_their_own_records_in_the_current_version() -> None:
    """Their content is encoded here, and they name what it is stored as."""
    call = re.compile(
        r"add_(?:jump\([^,]+,[^,]+,|own_record\([^,]+,|control_record\()[^,]+, '([\w@]+)'"
    )
    written = {
        stored for path in LUA.rglob("*.lua") for stored in call.findall(path.read_text("utf-8"))
    }
    assert {"run_finished", "branch_promoted", "run_queued"} <= {*map(plain_name, written)}
    assert written == {
        stored_name(kind, 1 + len(RECORD_UPGRADES.get(kind, ())))
        for kind in map(plain_name, written)
    }
    assert {*map(plain_name, written)} <= KINDS.keys()
