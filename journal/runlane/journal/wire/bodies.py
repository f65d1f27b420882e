"""What every record's content has in common."""

from msgspec import Struct


class Body(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a record."""


class RunBody(Body, frozen=True, kw_only=True):
    """The content of a record that belongs to a run."""

    run_id: str


class InAttempt(RunBody, frozen=True, kw_only=True):
    """The content of a record that the worker of one attempt wrote."""

    attempt: int
