"""What can go wrong before the demo has begun."""

from runlane.journal.errors import RunlaneError


class DemoError(RunlaneError):
    """A part of the demo cannot be started; the message says what to do."""
