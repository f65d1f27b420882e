"""When a branch gets a checkpoint: often enough for readers, seldom enough for the journal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runlane.journal.checkpoints import CHECKPOINT_BYTES, CHECKPOINT_RECORDS, Growth


@pytest.mark.parametrize(
    ("distance", "size", "due"),
    [
        (0, 0, False),
        (CHECKPOINT_RECORDS - 1, CHECKPOINT_BYTES - 1, False),
        (CHECKPOINT_RECORDS, 0, True),
        (0, CHECKPOINT_BYTES, True),
    ],
)
def test_many_records_or_many_bytes_make_one_due(distance: int, size: int, due: bool) -> None:
    assert Growth(distance, size).due is due


@pytest.mark.parametrize("checkpoint_size", [0, 1000, CHECKPOINT_BYTES])
def test_one_of_the_usual_size_is_due_by_distance_alone(checkpoint_size: int) -> None:
    assert Growth(CHECKPOINT_RECORDS, 1, checkpoint_size).due


def test_a_large_one_is_not_repeated_before_as_much_has_come_after_it() -> None:
    growth = Growth(checkpoint_size=10 * CHECKPOINT_BYTES)
    growth.add(distance=50 * CHECKPOINT_RECORDS, size=10 * CHECKPOINT_BYTES - 1)
    assert not growth.due
    growth.add(distance=1, size=1)
    assert growth.due


def test_counting_begins_anew_at_a_checkpoint() -> None:
    growth = Growth()
    growth.add(distance=CHECKPOINT_RECORDS, size=CHECKPOINT_BYTES)
    assert growth.due
    growth.restart(7)
    assert growth == Growth(0, 0, 7)
    assert not growth.due


@given(
    st.lists(
        st.integers(1, 2 * CHECKPOINT_BYTES),
        min_size=1,
        max_size=200,
    )
)
def test_what_grows_without_end_is_copied_a_limited_number_of_times(sizes: list[int]) -> None:
    """The transcript is never compacted: each checkpoint is as large as all that was said."""
    growth, said, copied, largest_gap = Growth(), 0, 0, 0
    for size in sizes:
        growth.add(distance=1, size=size)
        said += size
        largest_gap = max(largest_gap, growth.size)
        if growth.due:
            copied += said
            growth.restart(said)
    assert copied <= 2 * said + 2 * CHECKPOINT_BYTES
    assert largest_gap <= max(said, CHECKPOINT_BYTES) + max(sizes)


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=500))
def test_a_short_transcript_never_lets_a_reader_wait(sizes: list[int]) -> None:
    """It is compacted: a checkpoint is small, whatever was said."""
    growth = Growth()
    for size in sizes:
        growth.add(distance=3, size=size)
        assert growth.distance < CHECKPOINT_RECORDS + 3
        assert growth.size < CHECKPOINT_BYTES + 5000
        if growth.due:
            growth.restart(2000)
