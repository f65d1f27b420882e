"""Calls without permission are errors that the model reads; the run goes on."""

from examples.local import model, run, serving
from runlane.worker import Agent, App, DenyListPolicy, PermissionMiddleware, ToolEffect, tool


@tool(effect=ToolEffect.READ_ONLY)
async def read(name: str) -> str:
    """Read a file."""
    return f"{name} is empty"


@tool(effect=ToolEffect.SIDE_EFFECTING)
async def delete(name: str) -> str:
    """Delete a file."""
    raise AssertionError("this is never called")


permissions = PermissionMiddleware(DenyListPolicy(["delete"]))
app = App([Agent("limited", model(), tools=[read, delete], middlewares=[permissions])])
TASK = '[[tools delete {"name": "a.txt"}; read {"name": "a.txt"}]]'


async def main() -> None:
    async with serving(app) as client:
        result = await (await client.session("limited-1", agent="limited").run(TASK))
        print(f"{result.status}: {result.output}")


if __name__ == "__main__":
    run(main)
