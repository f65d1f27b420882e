"""What a rule of a foreign format says when it is broken."""


class BreachError(ValueError):
    """A rule of the format is broken; whoever reads the file adds the place."""
