"""What the sessions of the demo ask, of a scripted model or of a real one."""

from typing import Final

AGENT: Final = "support"


class Tasks:
    """The messages of one session.

    Args:
        number: The session; its orders are named after it.
        scripted: Whether the model is the scripted one, which carries out what stands in double
            brackets. A real model gets the same wish in words alone.
    """

    def __init__(self, number: int, *, scripted: bool) -> None:
        self._number = number
        self._scripted = scripted

    @property
    def first(self) -> str:
        """A run of four turns: three tool calls, then the answer."""
        order = f"A-{self._number}"
        return self._task(
            f"Order {order} arrived broken. Look it up, open a return for it, refund 1500 cents.",
            f'[[delay {self._thinking_s}]] [[tool find_order {{"order_id": "{order}"}}]]',
            f'[[delay {self._thinking_s}]] [[tool open_return {{"order_id": "{order}"}}]]',
            f"[[delay {self._thinking_s}]] "
            f'[[tool refund {{"order_id": "{order}", "cents": 1500}}]]',
            f"[[delay {self._thinking_s}]] [[pace 0.06]] "
            f"[[say I am sorry about order {order}. The return is open, and 15.00 is on its way.]]",
        )

    @property
    def follow_up(self) -> str:
        """A run of three turns: two tool calls, then the answer."""
        order = f"B-{self._number}"
        return self._task(
            f"And order {order} never came. Look it up and refund 500 cents for it.",
            f'[[delay {self._thinking_s}]] [[tool find_order {{"order_id": "{order}"}}]]',
            f'[[delay {self._thinking_s}]] [[tool refund {{"order_id": "{order}", "cents": 500}}]]',
            f"[[delay {self._thinking_s}]] [[pace 0.06]] "
            f"[[say Order {order} is lost, so 5.00 is on its way back to you as well.]]",
        )

    @property
    def _thinking_s(self) -> float:
        """How long the scripted model thinks: not the same in all sessions."""
        return 0.5 + self._number % 5 * 0.15

    def _task(self, wish: str, *directives: str) -> str:
        return " ".join([wish, *directives]) if self._scripted else wish
