"""What a tool raises to tell the model something."""

from runlane.journal.errors import RunlaneError


class ToolError(RunlaneError):
    """The call failed, in a way that the tool knows: the model reads the message, and nothing else.

    Any other exception gives an error result as well, and is logged as a fault of the tool.
    """
