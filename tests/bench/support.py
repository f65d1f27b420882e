"""Reports that nobody measured."""

from bench.report import Machine, Report

MACHINE = Machine(cores=2, python="3.11.0", server="valkey 9.0.0", load=0.5)


def report(name: str = "start") -> Report:
    return Report(
        name=name,
        machine=MACHINE,
        figures={"start_p50_ms": 2.0, "own_ms": 1.25},
        peers={"arq": {"start_p50_ms": 1250.0}, "other": {"start_p50_ms": 1.0}},
        ratios={"start_p50_ms/arq": 625.0, "start_p50_ms/other": 0.5},
    )
