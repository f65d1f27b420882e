"""What may be an id, and how new ones are made."""

import re
import string
import time
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runlane.journal.errors import InvalidInputError
from runlane.journal.ids import (
    check_id,
    check_prefix,
    check_run_id,
    new_request_id,
    new_run_id,
)
from runlane.journal.keys import LANE_SEPARATOR

ALPHABET = string.ascii_letters + string.digits + "._:-"


@given(st.text(ALPHABET, min_size=1, max_size=128))
def test_every_text_of_the_alphabet_is_an_id(value: str) -> None:
    assert check_id("session", value) == value


@given(st.text())
def test_nothing_else_is_an_id(value: str) -> None:
    if value and len(value) <= 128 and set(value) <= set(ALPHABET):
        return
    with pytest.raises(InvalidInputError, match="session"):
        check_id("session", value)


@pytest.mark.parametrize(
    "value", ["", "a" * 129, "a b", "a/b", "@control", "é", "a\n", "{a}", "a\0"]
)
def test_an_id_is_refused_by_name(value: str) -> None:
    with pytest.raises(InvalidInputError, match="branch"):
        check_id("branch", value)


def test_no_id_contains_what_separates_lanes() -> None:
    assert LANE_SEPARATOR not in ALPHABET


@pytest.mark.parametrize("value", ["a", "A.b_c-9", "x" * 64])
def test_a_prefix_is_accepted(value: str) -> None:
    assert check_prefix(value) == value


@pytest.mark.parametrize("value", ["", "x" * 65, "a:b", "a{b}", "a*", "a b", "a\n"])
def test_a_prefix_that_could_confuse_keys_is_refused(value: str) -> None:
    with pytest.raises(InvalidInputError, match="prefix"):
        check_prefix(value)


@given(st.uuids())
def test_every_way_to_write_a_uuid_gives_one_run_id(value: uuid.UUID) -> None:
    for text in (str(value), str(value).upper(), value.hex, f"{{{value}}}", value.urn):
        assert check_run_id(text) == str(value)


@pytest.mark.parametrize("value", ["", "x", "1" * 31, "zz" * 16])
def test_a_run_id_that_is_no_uuid_is_refused(value: str) -> None:
    with pytest.raises(InvalidInputError, match="run id"):
        check_run_id(value)


def test_run_ids_are_uuids_of_version_7_with_the_time_of_their_making() -> None:
    before = time.time_ns() // 1_000_000
    made = uuid.UUID(new_run_id())
    after = time.time_ns() // 1_000_000
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before <= made.int >> 80 <= after


def test_run_ids_sort_by_the_millisecond_of_their_making() -> None:
    ids = [new_run_id() for _ in range(2000)]
    assert len(set(ids)) == len(ids)
    millis = [uuid.UUID(run_id).int >> 80 for run_id in sorted(ids)]
    assert millis == [uuid.UUID(run_id).int >> 80 for run_id in ids]


def test_request_ids_are_short_and_never_the_same() -> None:
    ids = {new_request_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch(r"[0-9a-f]{24}", request_id) for request_id in ids)
