"""Runs in a process of its own, beside the real ejagent-core, and says what that makes of files.

Each folder of the root holds one journal, of session `s` and agent `a`.
"""

import asyncio
import importlib
import json
import sys
from pathlib import Path
from typing import Any

ejagent: Any = importlib.import_module("ejagent")

Json = dict[str, Any]

SESSION = "s"
PUBLIC = {"role", "content", "tool_calls", "tool_call_id"}


async def look(storage: Any) -> Json:
    """Return what the library reads: its branches, and that each record checks out."""
    try:
        await storage.load(SESSION)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    found: Json = {}
    for branch in await storage.list_branches(SESSION):
        checkout = await storage.checkout(SESSION, branch_id=branch.branch_id)
        last = next((run for run in reversed(checkout.session.runs) if run.finished), None)
        found[branch.branch_id] = {
            "messages": checkout.session.messages,
            "open": [run.run_id for run in checkout.session.runs if not run.finished],
            "last": last and [last.run_id, last.result.stop_reason.value],
            "intent": branch.intent and branch.intent.value,
        }
    for record in await storage.records(SESSION):
        await storage.checkout(SESSION, record_id=record.record_id)
    return {"error": None, "branches": found}


async def work(storage: Any) -> Json:
    """Branch from everywhere and run everywhere; return each run's task and what a retry gives."""
    retried: Json = {}
    for branch in await storage.list_branches(SESSION):
        name = branch.branch_id
        checkout = await storage.checkout(SESSION, branch_id=name)
        if any(not run.finished for run in checkout.session.runs):
            continue
        await storage.fork(SESSION, source_branch=name)
        if branch.base_record_id is not None:
            await storage.rollback(SESSION, to_record_id=branch.base_record_id, source_branch=name)
        for record in await storage.records(SESSION):
            if record.branch_id == name and record.kind.value == "run_started":
                run_id = record.data["run_id"]
                retry = await storage.prepare_retry(SESSION, run_id=run_id, source_branch=name)
                retried[run_id] = [record.data["task"], retry.task]
        await run_on(storage, name)
    return retried


async def run_on(storage: Any, branch_id: str) -> None:
    """Let a real agent go on from a branch; nothing that is private may reach its model."""
    seen: list[Any] = []
    agent = agent_of(storage, branch_id, seen)
    checkout = await storage.checkout(SESSION, branch_id=branch_id)
    if checkout is not None:
        agent.restore_session(checkout.session)
    result = await agent.run(task=f"go on with {branch_id}")
    assert result.succeeded, result
    for context in seen:
        for message in context.llm_messages:
            assert set(message) <= PUBLIC, message


def agent_of(storage: Any, branch_id: str, seen: list[Any]) -> Any:
    """Return an agent that calls a tool that works and one that fails, and then is done."""

    class Model(ejagent.ModelAdapter):  # type: ignore[misc]
        async def complete(self, context: Any, *, cancellation: Any = None) -> Any:
            seen.append(context)
            if context.llm_messages[-1]["role"] == "tool":
                return ejagent.AssistantMessage("Done.")
            names = ("works", "fails")
            calls = [ejagent.ModelToolCall(f"{name}{len(seen)}", name, "{}") for name in names]
            return ejagent.AssistantMessage("I call.", tuple(calls))

    class Tools(ejagent.MethodToolHandler):  # type: ignore[misc]
        async def do_works(self, arguments: Any, *, cancellation: Any = None) -> Any:
            return ejagent.StepOutcome({"it": "works"})

        async def do_fails(self, arguments: Any, *, cancellation: Any = None) -> Any:
            raise RuntimeError("it fails")

    tools = [ejagent.ToolDefinition(name=name, description="") for name in ("works", "fails")]
    recorder = ejagent.SessionRecorder(session_id=SESSION, storage=storage, branch_id=branch_id)
    return ejagent.BaseAgent(Model(), agent_id="a", handlers=[Tools(tools)], event_sink=recorder)


async def fresh(storage: Any) -> None:
    """Write a journal with the library alone."""
    await run_on(storage, "main")
    await run_on(storage, "main")
    await storage.fork(SESSION, branch_id="side")
    await run_on(storage, "side")


async def main(command: str, folders: list[Path]) -> Json:
    do: Any = {"look": look, "work": work, "fresh": fresh}[command]
    return {folder.name: await do(ejagent.JsonlSessionStorage(folder)) for folder in folders}


if __name__ == "__main__":
    json.dump(asyncio.run(main(sys.argv[1], sorted(Path(sys.argv[2]).iterdir()))), sys.stdout)
