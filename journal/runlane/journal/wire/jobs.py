"""What may be asked of a lane, and the small envelope that travels through arq."""

from enum import StrEnum
from typing import Literal

from msgspec import Struct


class FollowUpFailurePolicy(StrEnum):
    """What happens to a follow-up when the run before it does not complete."""

    DISCARD = "discard"
    CONTINUE = "continue"


class Job(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """What every job says.

    Attributes:
        run_id: The run that the job asks for: a UUIDv7 that the producer chose.
        session_id: The conversation.
        branch_id: The branch; with the session it names the lane.
        agent: The agent definition that executes it.
        version: Only a worker that serves exactly this version may execute it; None for any.
    """

    run_id: str
    session_id: str
    branch_id: str
    agent: str
    version: str | None = None

    @property
    def queue(self) -> str:
        """The name of the queue that holds it: the agent, and the version if one is named."""
        return self.agent if self.version is None else f"{self.agent}@{self.version}"


class RunJob(Job, frozen=True, kw_only=True, tag="run"):
    """Answer a new task."""

    task: str


class FollowUpJob(Job, frozen=True, kw_only=True, tag="follow_up"):
    """Answer a further task directly after the active run, before whatever waits behind it."""

    task: str
    failure_policy: FollowUpFailurePolicy = FollowUpFailurePolicy.DISCARD


class ContinueJob(Job, frozen=True, kw_only=True, tag="continue"):
    """Go on from where the last run of the lane ended, without a new user message."""


AnyJob = RunJob | FollowUpJob | ContinueJob
JobType = Literal["run", "follow_up", "continue"]
