"""Event sinks: who hears of runs inside the process that executes them."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

from runlane.journal.errors import RunlaneError
from runlane.journal.wire.events import Event

AgentEvent: TypeAlias = Event
"""What a sink is given: what subscribers hear."""


class AgentEventSink(Protocol):
    """Hears the events of runs, as far as they are executed in this process.

    Of each attempt a sink is given, one at a time and in order, the committed events that the
    attempt wrote and the provisional ones that it published; the terminal event comes last. None
    of them was refused by the journal. It hears nothing of other workers, nor of what they and
    clients write about the run, and misses what a crash of the process swallows: whoever needs
    all events subscribes.

    A run waits for no sink. One sink serves all runs of its agent at the same time.
    """

    async def emit(self, event: AgentEvent) -> None:
        """Take an event in, without blocking the event loop.

        What is raised is logged, and the next event comes all the same. A sink that is so slow
        that thousands of events wait for it misses the provisional ones, and then is given up for
        the run; so is one that has not heard the rest five seconds after the attempt has ended.
        """
        ...


class AgentEventSinkError(RunlaneError):
    """Some of the sinks of a composite failed.

    Attributes:
        errors: What they raised, in their order.
    """

    def __init__(self, errors: Sequence[BaseException]) -> None:
        self.errors = tuple(errors)
        names = ", ".join(type(error).__name__ for error in errors)
        super().__init__(f"{len(errors)} event sink(s) failed: {names}")


class CompositeAgentEventSink:
    """Passes each event to several sinks, one after the other.

    Args:
        sinks: In this order; one that fails keeps none of the others from hearing the event.
    """

    def __init__(self, sinks: Iterable[AgentEventSink]) -> None:
        self.sinks = tuple(sinks)

    async def emit(self, event: AgentEvent) -> None:
        """Pass an event on.

        Raises:
            AgentEventSinkError: Some of the sinks failed.
        """
        errors: list[BaseException] = []
        for sink in self.sinks:
            try:
                await sink.emit(event)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as error:  # SystemExit too: the others are to hear the event
                task = asyncio.current_task()
                if task is not None and task.cancelling():
                    raise
                errors.append(error)
        if errors:
            raise AgentEventSinkError(errors) from errors[0]
