"""The loop: model turn, tool calls, model turn, until the run ends."""

import asyncio

import structlog
from msgspec.structs import replace

from runlane.journal.errors import WriteRefusedError
from runlane.journal.projection import OpenRun
from runlane.journal.wire.events import EventKind
from runlane.journal.wire.messages import AssistantMessage, UserMessage
from runlane.journal.wire.records import MessageAppended
from runlane.journal.wire.results import StopReason
from runlane.journal.wire.tree import SteeringApplied
from runlane.worker.app import Agent
from runlane.worker.behavior import BehaviorDecision, BehaviorHookError
from runlane.worker.control import AgentCancelledError
from runlane.worker.loop.calls import settle_calls
from runlane.worker.loop.ending import Ending
from runlane.worker.loop.guards import reached_limit
from runlane.worker.loop.moments import Moments, steering_of
from runlane.worker.loop.request import Requests
from runlane.worker.loop.session import HandBackSignal, RunSession
from runlane.worker.tools.execution import asked_to_stop
from runlane.worker.tools.texts import describe

logger = structlog.get_logger(__name__)


async def orchestrate(agent: Agent, session: RunSession) -> Ending:
    """Carry the open run on from wherever its records stand, and return how it ends.

    Nothing but the end itself is left to journal: every other record was committed on the way.

    Raises:
        WriteRefusedError: The lease was lost.
        HandBackSignal: The worker stops, and the run is at a turn boundary.
    """
    return await _Loop(agent, session).run()


class _Loop:
    def __init__(self, agent: Agent, session: RunSession) -> None:
        self.agent = agent
        self.session = session
        self.moments = Moments(agent, session)
        self.requests = Requests(agent, session, self.moments)
        self.turn = 0
        """The turn under way; 0 between two turns."""

    async def run(self) -> Ending:
        try:
            ending = await self._turns()
        except (WriteRefusedError, HandBackSignal):
            raise
        except BehaviorHookError as error:
            ending = Ending(StopReason.RUNTIME_ERROR, error=str(error), turn=self.turn)
        except AgentCancelledError as error:  # in a hook
            ending = Ending(StopReason.EXTERNAL_ABORT, error=error.reason, turn=self.turn)
        except Exception as error:
            if asked_to_stop():
                raise asyncio.CancelledError from error
            logger.exception("run_failed", run_id=self.session.run_id)
            reason = StopReason.RUNTIME_ERROR
            ending = Ending(reason, error=describe(error, typed=True), turn=self.turn)
        await self.moments.on_run_end(ending)
        return ending

    async def _turns(self) -> Ending:
        run = _open_run(self.session)
        if ending := await self._resume(run):
            return ending
        while True:
            if self.session.cancellation.cancelled:
                return self._aborted()
            await self.session.reach_turn_boundary()
            policy, projection = self.agent.runtime_policy, self.session.projection
            if ending := reached_limit(policy, projection, self.session.elapsed_s):
                return ending
            self.turn = run.turn + 1
            self.session.emit(EventKind.TURN_STARTED, self.turn)
            await self._apply_steering()
            response = await self.requests.ask(run)
            if isinstance(response, Ending):
                return response
            if isinstance(response, BehaviorDecision):
                output = _output_of(response, self._last_text())
                return Ending(StopReason.BEHAVIOR_STOP, output=output, turn=self.turn)
            if ending := await self._settle(response, committed=False):
                return ending

    async def _resume(self, run: OpenRun) -> Ending | None:
        """Begin, or finish the turn in which an earlier attempt ended."""
        if run.response is not None:
            return await self._settle(run.response, committed=True)
        if run.turn == 0 and (decision := await self.moments.on_run_start()):
            await self._steer(decision, "on_run_start", turn=1)
            if decision.stops:
                return Ending(StopReason.BEHAVIOR_STOP, output=decision.output)
        return None

    async def _settle(self, response: MessageAppended, *, committed: bool) -> Ending | None:
        """Do what a response asks for; return an ending if the run ends with its turn."""
        self.turn = response.turn
        if response.message.tool_calls:
            ending = await settle_calls(
                self.agent, self.session, self.moments, response, committed=committed
            )
        else:
            ending = await self._settle_text(response, committed=committed)
        if ending is not None:
            return ending
        self.session.emit(EventKind.TURN_COMPLETED, self.turn)
        self.turn = 0
        decision = await self.moments.after_turn(response)
        if decision is None:
            return None
        await self._steer(decision, "after_turn", turn=response.turn + 1)
        if not decision.stops:
            return None
        return Ending(StopReason.BEHAVIOR_STOP, output=_output_of(decision, response.message))

    async def _settle_text(self, response: MessageAppended, *, committed: bool) -> Ending | None:
        policy = self.agent.runtime_policy
        if committed and isinstance(self.session.projection.messages[-1], UserMessage):
            return None  # somebody spoke after it
        if not committed and self.moments.wants_response:
            await self.session.commit(response)
            committed = True
        decision = await self.moments.after_model(response)
        if decision is not None and decision.stops:
            output = _output_of(decision, response.message)
            ending = self._ending(StopReason.BEHAVIOR_STOP, response, committed, output=output)
            said = steering_of(
                self.session.run_id, decision.steer, response.turn + 1, "after_model"
            )
            return replace(ending, last=(*ending.last, *said))
        goes_on = bool(self.session.steering) or (decision is not None and decision.steer)
        if (goes_on or policy.require_explicit_finish) and not committed:
            await self.session.commit(response)
            committed = True
        if decision is not None:
            await self._steer(decision, "after_model", turn=response.turn + 1)
        if goes_on or self.session.steering:
            return None
        if policy.require_explicit_finish:
            return self._without_tools(response)
        text = response.message.content
        if not text:
            return self._ending(
                StopReason.EMPTY_RESPONSE, response, committed, error="the model gave no answer"
            )
        return self._ending(StopReason.TEXT_RESPONSE, response, committed, output=text)

    def _without_tools(self, response: MessageAppended) -> Ending | None:
        count = _open_run(self.session).without_tools
        if count < self.agent.runtime_policy.max_no_tool_responses:
            return None
        return Ending(
            StopReason.MAX_NO_TOOL_RESPONSES,
            error=f"the model answered {count} times in a row without a tool call",
            turn=response.turn,
        )

    def _ending(
        self,
        reason: StopReason,
        response: MessageAppended,
        committed: bool,
        *,
        output: str | None = None,
        error: str | None = None,
    ) -> Ending:
        last = () if committed else (response,)
        return Ending(reason, output=output, error=error, last=last, turn=response.turn)

    async def _apply_steering(self) -> None:
        """Let the model hear what was said to the run, until nothing more has been."""
        while inputs := tuple(self.session.steering):
            await self.session.commit(
                *(
                    SteeringApplied(
                        run_id=self.session.run_id,
                        input_id=each.input_id,
                        content=each.content,
                        target_turn=self.turn,
                    )
                    for each in inputs
                )
            )

    async def _steer(self, decision: BehaviorDecision, place: str, *, turn: int) -> None:
        if steering := steering_of(self.session.run_id, decision.steer, turn, place):
            await self.session.commit(*steering)

    def _last_text(self) -> AssistantMessage | None:
        """Return the last response of the run."""
        messages = self.session.projection.messages[_open_run(self.session).first_message :]
        said = (each for each in reversed(messages) if isinstance(each, AssistantMessage))
        return next(said, None)

    def _aborted(self) -> Ending:
        return Ending(StopReason.EXTERNAL_ABORT, error=self.session.cancellation.reason)


def _output_of(decision: BehaviorDecision, message: AssistantMessage | None) -> str | None:
    if decision.output is not None or message is None:
        return decision.output
    return message.content


def _open_run(session: RunSession) -> OpenRun:
    run = session.projection.open_run
    assert run is not None, "the attempt begins with a record of the run"
    assert run.run_id == session.run_id, "a lane has one open run"
    return run
