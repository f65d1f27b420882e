"""What every error of runlane is."""


class RunlaneError(Exception):
    """Base of every error that runlane raises on purpose."""
