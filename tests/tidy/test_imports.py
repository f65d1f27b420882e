"""What a process imports before it has anything to do: no more than that takes."""

import subprocess
import sys

import pytest

HEAVY = ("openai", "httpx", "pydantic", "google.genai", "anthropic", "boto3", "mcp")
"""Vendor SDKs and what comes with them; seconds of CPU in each worker that starts."""


@pytest.mark.parametrize(
    "code",
    [
        "import runlane.producer, runlane.producer.cli",
        "import runlane.worker, runlane.worker.cli, runlane.worker.demo.cli",
        """
from runlane.worker import Agent, App, ModelConfig, OpenAIModelAdapter
model = OpenAIModelAdapter(ModelConfig(base_url="http://127.0.0.1:1/v1", api_key="k", model="m"))
App([Agent("clerk", model)])
""",
    ],
    ids=["producer", "worker", "application"],
)
def test_no_vendor_sdk_is_imported_before_it_is_needed(code: str) -> None:
    code += f"\nimport sys; print([name for name in {HEAVY} if name in sys.modules])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_producer_imports_nothing_that_executes_runs() -> None:
    code = "import sys, runlane.producer; sys.exit('runlane.worker' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
