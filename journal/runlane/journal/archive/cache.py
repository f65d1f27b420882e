"""Values that were used lately."""

from collections import OrderedDict
from typing import Generic, TypeVar

V = TypeVar("V")


class Cache(Generic[V]):
    """The values used last, up to a total weight. For one thread."""

    def __init__(self, weight_max: int) -> None:
        self._weight_max = weight_max
        self._weight = 0
        self._values: OrderedDict[str, tuple[V, int]] = OrderedDict()

    def get(self, key: str) -> V | None:
        """Return a value, which is now the one used last; None if it is not here."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: str, value: V, *, weight: int) -> None:
        """Keep a value unless it is too heavy alone; those used longest ago make room."""
        if weight > self._weight_max:
            return
        _, weight_before = self._values.pop(key, (None, 0))
        self._values[key] = (value, weight)
        self._weight += weight - weight_before
        while self._weight > self._weight_max:
            _, (_, dropped) = self._values.popitem(last=False)
            self._weight -= dropped
