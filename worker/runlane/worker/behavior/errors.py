"""What can go wrong with what an application hooks into a run."""

from runlane.journal.errors import RunlaneError


class BehaviorHookError(RunlaneError):
    """A hook, a context transform or a hint provider failed: the run ends.

    Attributes:
        hook: The class or function.
        phase: The moment.
    """

    def __init__(self, hook: str, phase: str, why: str) -> None:
        self.hook = hook
        self.phase = phase
        super().__init__(f"hook {hook} failed in {phase}: {why}")
