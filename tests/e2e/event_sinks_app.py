"""An agent whose sink writes down what it hears, in a file of its process beside the ledger."""

import os
from pathlib import Path

import msgspec
from tests.e2e.apps import LEDGER, TOOLS

from runlane.worker import Agent, App, ModelConfig, OpenAIModelAdapter
from runlane.worker.events import AgentEvent


class FileSink:
    """One line of JSON for each event."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def emit(self, event: AgentEvent) -> None:
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(event) + b"\n")


SINK = FileSink(LEDGER.path.with_name(f"events-{os.getpid()}"))
MODEL = OpenAIModelAdapter(ModelConfig.from_env())

app = App([Agent("clerk", MODEL, tools=TOOLS, event_sink=SINK)])
