"""Show a run while it happens: the answer on standard output, all else on standard error."""

import sys

import click

from runlane.journal.wire.events import Event, EventKind
from runlane.journal.wire.results import AgentRunResult

_CONTROL_CHARACTERS = dict.fromkeys(
    code for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
)


def printable(text: str) -> str:
    """Return text of a model or tool without what a terminal would obey."""
    return text.translate(_CONTROL_CHARACTERS)


def note(text: str) -> None:
    """Say something that is no part of the answer."""
    click.secho(printable(text), err=True, dim=True)


class Answer:
    """Prints the text of a run: as it is streamed on a terminal, else message by message."""

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()
        self._place = (0, 0)
        self._streamed = ""

    def show(self, event: Event) -> None:
        """Print what an event adds to the answer."""
        payload = event.payload
        match event.kind:
            case EventKind.ASSISTANT_TEXT_DELTA if self._live:
                self._stream(event, payload["delta"])
            case EventKind.MESSAGE_COMPLETED:
                self._complete(event, payload["message"].get("content") or "")
            case EventKind.TOOL_STARTED:
                note(f"→ {payload['call']['name']} {payload['call'].get('arguments', '')}")
            case EventKind.TOOL_COMPLETED:
                note(f"← {payload['message']['tool_name']}: {payload['outcome']}")
            case EventKind.SUPERSEDED:
                self._end_line()
                note(f"attempt {event.attempt - 1} is over; attempt {event.attempt} goes on")
            case EventKind.JOURNAL_RESET:
                self._end_line()
                note("the server has lost records; the run is shown from its beginning")
            case EventKind.AGENT_FINISHED:
                self._end_line()
            case _:
                pass

    def _stream(self, event: Event, text: str) -> None:
        place = (event.attempt, event.turn)
        if place != self._place:
            self._end_line()
            self._place = place
        self._streamed += text
        click.echo(printable(text), nl=False)

    def _complete(self, event: Event, content: str) -> None:
        streamed = self._streamed if self._place == (event.attempt, event.turn) else ""
        if not content.startswith(streamed):  # parts of the stream were lost
            self._end_line()
            streamed = ""
        if content:
            click.echo(printable(content.removeprefix(streamed)))
        self._streamed = ""

    def _end_line(self) -> None:
        if self._streamed:
            click.echo()
        self._streamed = ""


def describe(run_id: str, result: AgentRunResult) -> str:
    """Return one line that says how a run ended."""
    detail = f": {result.error}" if result.error else ""
    turns = f"{result.turns} turn{'' if result.turns == 1 else 's'}"
    tokens = f"{result.usage.total_tokens} tokens"
    return f"{result.status} ({result.stop_reason}){detail} · {turns} · {tokens} · run {run_id}"
