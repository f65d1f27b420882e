"""Benchmarks of runlane beside its peers: `python -m bench NAME [--json] [--full]`."""
