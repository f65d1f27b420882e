"""A Redis or Valkey server of our own, for development, the demo and the tests."""

from runlane.journal.server.binary import find_binary, server_version
from runlane.journal.server.launcher import Server, launch

__all__ = ["Server", "find_binary", "launch", "server_version"]
