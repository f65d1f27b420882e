"""What a worker serves: agents, as definitions without any state of a run."""

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from runlane.journal.errors import InvalidInputError
from runlane.journal.ids import check_id
from runlane.worker.behavior import BehaviorHooks, ContextTransform, HintProvider
from runlane.worker.events import AgentEventSink
from runlane.worker.models import ModelAdapter, ToolSchema
from runlane.worker.policy import RecoveryPolicy, RuntimePolicy
from runlane.worker.tools import (
    BaseHandler,
    FunctionTool,
    FunctionToolHandler,
    ToolMiddleware,
    ToolRuntime,
)


class AppLoadError(InvalidInputError):
    """The module that should hold the app cannot be used."""


class Agent:
    """One agent definition.

    Args:
        name: What sessions are bound to; it is the name of its queue too.
        model: Answers its turns; started and stopped with the worker.
        version: Shown in each run; a job may ask for exactly this one.
        system_prompt: The first message of every request; never journaled.
        tools: Typed functions, made by `@tool`.
        handlers: Further tools.
        middlewares: What each tool call goes through, outermost first.
        behavior_hooks: Objects with methods of `BehaviorHook`: they look at the moments of a run,
            and may change what happens.
        context_transform: Makes of the conversation what the model reads of it.
        hint_provider: Says something to the model in each request that nobody keeps.
        event_sink: Hears each event of the runs that are executed in this process.
        runtime_policy: Limits of a run.
        recovery_policy: What to do about side effects whose outcome a crash has lost.

    An agent holds no state of any run: one definition serves all of them, side by side.

    Raises:
        InvalidInputError: A name is out of its alphabet, two tools have one name, or an object
            is no hook.
    """

    def __init__(  # noqa: PLR0913 (the words of a definition)
        self,
        name: str,
        model: ModelAdapter,
        *,
        version: str = "1",
        system_prompt: str = "",
        tools: Sequence[FunctionTool[..., Any]] = (),
        handlers: Sequence[BaseHandler] = (),
        middlewares: Sequence[ToolMiddleware] = (),
        behavior_hooks: Sequence[object] = (),
        context_transform: ContextTransform | None = None,
        hint_provider: HintProvider | None = None,
        event_sink: AgentEventSink | None = None,
        runtime_policy: RuntimePolicy | None = None,
        recovery_policy: RecoveryPolicy = RecoveryPolicy.REPORT,
    ) -> None:
        self.name = check_id("agent", _of("name", name, str))
        _of("model", model, ModelAdapter)
        _of("system_prompt", system_prompt, str)
        for argument, values, type_ in (
            ("tools", tools, FunctionTool),
            ("handlers", handlers, BaseHandler),
            ("middlewares", middlewares, ToolMiddleware),
        ):
            for value in _of(argument, values, Sequence):
                _of(f"each of {argument}", value, type_)
        _of("runtime_policy", runtime_policy, RuntimePolicy | None)
        for argument, function in (
            ("context_transform", context_transform),
            ("hint_provider", hint_provider),
        ):
            _of(argument, function, Callable | None)
        if event_sink is not None and not inspect.iscoroutinefunction(
            getattr(event_sink, "emit", None)
        ):
            raise InvalidInputError("event_sink needs a method `async def emit(self, event)`")
        self.version = check_id("version", version)
        self.model = model
        self.system_prompt = system_prompt
        self.runtime_policy = runtime_policy or RuntimePolicy()
        try:
            self.recovery_policy = RecoveryPolicy(recovery_policy)
        except ValueError as error:
            known = ", ".join(RecoveryPolicy)
            raise InvalidInputError(f"recovery_policy: {error}; use one of {known}") from error
        self.middlewares = tuple(middlewares)
        self.hooks = BehaviorHooks(behavior_hooks, timeout_s=self.runtime_policy.hook_timeout_s)
        self.context_transform = context_transform
        self.hint_provider = hint_provider
        self.event_sink = event_sink
        offered = [*handlers, FunctionToolHandler(tools)] if tools else [*handlers]
        self.tools = ToolRuntime(
            offered,
            self.middlewares,
            timeout_s=self.runtime_policy.tool_timeout_s,
            result_bytes_max=self.runtime_policy.max_result_bytes,
        )
        self._running = AsyncExitStack()
        self.tool_schemas: tuple[ToolSchema, ...] = ()

    @property
    def queues(self) -> tuple[str, str]:
        """The queues that hold its runs: for any version, and for this one."""
        return self.name, f"{self.name}@{self.version}"

    async def startup(self) -> None:
        """Start the model, then the tools; if these fail, stop the model."""
        async with AsyncExitStack() as starting:
            await self.model.startup()
            starting.push_async_callback(self.model.shutdown)
            await self.tools.startup()
            starting.push_async_callback(self.tools.shutdown)
            self.tool_schemas = tuple(each.schema for each in self.tools.definitions)
            self._running = starting.pop_all()

    async def shutdown(self) -> None:
        """Stop the tools, then the model."""
        await self._running.aclose()


class App:
    """The agents that a worker serves.

    Raises:
        InvalidInputError: There are none, or two have one name.
    """

    def __init__(self, agents: Sequence[Agent]) -> None:
        self.agents = {agent.name: agent for agent in agents}
        if not agents:
            raise InvalidInputError("an App needs at least one agent")
        if len(self.agents) != len(agents):
            names = sorted(agent.name for agent in agents)
            raise InvalidInputError(f"two agents of an App have one name: {names}")


def _of(argument: str, value: Any, type_: Any) -> Any:
    """Return a value that is of its type."""
    if not isinstance(value, type_):
        name = getattr(type_, "__name__", str(type_))
        raise InvalidInputError(f"{argument} should be {name}, not {value!r:.100}")
    return value


def load_app(path: str) -> App:
    """Return the app at `module.path:attribute`; the working directory may be imported from.

    Raises:
        AppLoadError: There is no such module or attribute, it does not import, or is no App.
    """
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute:
        raise AppLoadError(f"{path!r} is not of the form package.module:app")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise AppLoadError(
            f"module {module_name!r} does not import: {type(error).__name__}: {error}"
        ) from error
    app = getattr(module, attribute, None)
    if not isinstance(app, App):
        found = "nothing" if app is None else type(app).__name__
        raise AppLoadError(f"{path!r} should be a runlane.worker.App, found {found}")
    return app
