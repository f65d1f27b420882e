"""The tree of a session does what the oracle says, on every real server."""

from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.journal.tree_machine import TreeMachine

from runlane.journal.server import Server


def test_the_tree_does_what_the_oracle_says_whatever_happens(any_server: Server) -> None:
    class Machine(TreeMachine):
        url = any_server.url

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=40,
            phases=(Phase.reuse, Phase.generate),  # shrinking against a server takes minutes
        ),
    )
