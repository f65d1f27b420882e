"""The systems that are measured: how each one's worker runs and how jobs get into its queue."""
