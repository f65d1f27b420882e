"""The atomic steps: one script each, with its contract in its header."""
