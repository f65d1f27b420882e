"""Instruments: metrics and logs, defined once, imported by everything above."""
