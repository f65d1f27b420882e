"""Hooks: where an application looks into a run, and has a say in how it goes on."""

from runlane.worker.behavior.composite import BehaviorHooks
from runlane.worker.behavior.context import ContextTransform, HintProvider, hinted, transformed
from runlane.worker.behavior.decision import BehaviorAction, BehaviorDecision
from runlane.worker.behavior.errors import BehaviorHookError
from runlane.worker.behavior.hooks import BehaviorHook
from runlane.worker.behavior.snapshot import HookedCall, TurnSnapshot

__all__ = [
    "BehaviorAction",
    "BehaviorDecision",
    "BehaviorHook",
    "BehaviorHookError",
    "BehaviorHooks",
    "ContextTransform",
    "HintProvider",
    "HookedCall",
    "TurnSnapshot",
    "hinted",
    "transformed",
]
