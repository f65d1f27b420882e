"""Peers that need packages of their own: each has an environment and a process of its own."""
