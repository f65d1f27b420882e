"""Benchmarks of runlane beside its peer, stock arq: `python -m bench NAME [--json] [--full]`."""
