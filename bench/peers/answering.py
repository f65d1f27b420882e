"""The peer's side of a conversation with the bench; it needs nothing but Python itself."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any


def answer(handlers: Mapping[str, Callable[..., Any]]) -> None:
    """Carry out what each line of standard input asks for, until there is no more.

    A line is a JSON object: `do` names a handler, the rest are its arguments. What it returns is
    printed as one line of JSON.
    """
    for line in sys.stdin:
        arguments = json.loads(line)
        print(json.dumps(handlers[arguments.pop("do")](**arguments)), flush=True)
