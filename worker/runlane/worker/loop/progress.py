"""How subscribers hear what a running tool says."""

import json
from typing import Any, Final

import msgspec
import structlog

from runlane.journal.wire.events import EventKind
from runlane.journal.wire.messages import ModelToolCall
from runlane.worker.loop.session import RunSession
from runlane.worker.tools import ToolProgressReporter, ToolProgressUpdate
from runlane.worker.tools.texts import json_text, storable

PROGRESS_BYTES_MAX: Final = 64 * 1024

logger = structlog.get_logger(__name__)


def reporter(session: RunSession, turn: int, call: ModelToolCall) -> ToolProgressReporter:
    """Return what a call reports by; a report that no event can hold is dropped and logged."""

    async def heard(update: ToolProgressUpdate) -> None:
        try:
            payload = _payload(call, update)
        except (TypeError, ValueError, RecursionError, OverflowError):
            logger.warning("progress_dropped", run_id=session.run_id, turn=turn)
            return
        session.emit(EventKind.TOOL_PROGRESSED, turn, payload)

    return ToolProgressReporter(heard, session.cancellation)


def _payload(call: ModelToolCall, update: ToolProgressUpdate) -> dict[str, Any]:
    text = storable(json_text(update))
    payload: dict[str, Any] = {
        "tool_call_id": call.id,
        "tool_name": call.name,
        "update": json.loads(text),
    }
    if len(msgspec.msgpack.encode(payload)) > PROGRESS_BYTES_MAX:
        raise ValueError(f"a report has over {PROGRESS_BYTES_MAX} bytes")
    return payload
