"""A tree that only grows at its leaves: which node leads to which, in logarithmic time."""


class Ancestry:
    """Nodes numbered in the order in which they were added, each with a jump far up its path.

    The jumps are those of skew-binary random-access lists (Myers, 1983): from any node, any
    ancestor is reached in O(log n) steps.
    """

    def __init__(self) -> None:
        self._depths: list[int] = []
        self._parents: list[int] = []
        self._jumps: list[int] = []

    def add(self, parent: int | None) -> int:
        """Add a node below `parent`, or a root; return its number."""
        node = len(self._parents)
        if parent is None:
            self._depths.append(0)
            self._parents.append(node)
            self._jumps.append(node)
            return node
        depths, jump = self._depths, self._jumps[parent]
        far = self._jumps[jump]
        even = depths[parent] - depths[jump] == depths[jump] - depths[far]
        depths.append(depths[parent] + 1)
        self._parents.append(parent)
        self._jumps.append(far if even else parent)
        return node

    def leads_to(self, ancestor: int, node: int) -> bool:
        """Return whether `ancestor` is `node` or lies on the way from its root to it."""
        depth = self._depths[ancestor]
        while self._depths[node] > depth:
            jump = self._jumps[node]
            node = jump if self._depths[jump] >= depth else self._parents[node]
        return node == ancestor

    def is_above(self, node: int, other: int) -> bool:
        """Return whether a node is nearer to its root than another one to its own."""
        return self._depths[node] < self._depths[other]


class NamesOnPaths:
    """Names that must be unique on every path of a tree, though not in all of it."""

    def __init__(self, ancestry: Ancestry) -> None:
        self._ancestry = ancestry
        self._nodes: dict[str, list[int]] = {}

    def add(self, name: str, node: int) -> None:
        """Note that the name was given at a node."""
        self._nodes.setdefault(name, []).append(node)

    def find(self, name: str, head: int, since: int) -> int | None:
        """Return the node that gave the name, on the path from `since` to `head`."""
        ancestry = self._ancestry
        for node in reversed(self._nodes.get(name, ())):
            if not ancestry.is_above(node, since) and ancestry.leads_to(node, head):
                return node
        return None
