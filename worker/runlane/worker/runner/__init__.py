"""The process that executes runs: claims them, keeps their leases, drains, outlives Redis."""
