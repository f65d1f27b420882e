"""The lanes do what the oracle says, on every real server."""

from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.journal.lane_machine import LaneMachine

from runlane.journal.server import Server


def test_lanes_do_what_the_oracle_says_whatever_happens(any_server: Server) -> None:
    class Machine(LaneMachine):
        url = any_server.url

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=40,
            stateful_step_count=50,
            phases=(Phase.reuse, Phase.generate),  # shrinking against a server takes minutes
        ),
    )
