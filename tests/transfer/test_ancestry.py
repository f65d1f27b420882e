"""Which node leads to which, against the plain walk along parents."""

from hypothesis import given
from hypothesis import strategies as st

from runlane.journal.transfer.ancestry import Ancestry, NamesOnPaths


@given(st.lists(st.none() | st.integers(0, 10**6), min_size=1, max_size=60))
def test_ancestors_are_those_of_a_walk(draws: list[int | None]) -> None:
    ancestry, parents = Ancestry(), list[int | None]()
    for number, draw in enumerate(draws):
        parent = None if draw is None or not number else draw % number
        assert ancestry.add(parent) == number
        parents.append(parent)
    for node in range(len(parents)):
        walked: set[int] = set()
        at: int | None = node
        while at is not None:
            walked.add(at)
            at = parents[at]
        assert {other for other in range(len(parents)) if ancestry.leads_to(other, node)} == walked


def test_a_long_path_takes_few_steps() -> None:
    ancestry = Ancestry()
    for node in range(100_000):
        ancestry.add(node - 1 if node else None)
    assert all(ancestry.leads_to(node, 99_999) for node in range(0, 100_000, 97))


def test_names_count_from_the_last_checkpoint_of_the_own_path_on() -> None:
    ancestry = Ancestry()
    root, left, right = ancestry.add(None), ancestry.add(0), ancestry.add(0)
    names = NamesOnPaths(ancestry)
    names.add("r1", root)
    names.add("r2", left)
    assert names.find("r1", left, since=root) == root
    assert names.find("r1", left, since=left) is None
    assert names.find("r2", left, since=left) == left
    assert names.find("r2", right, since=root) is None
