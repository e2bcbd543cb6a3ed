"""Ergometer's Python client: markers for a measured program, and reading what was measured.

    import ergometer

    with ergometer.region("epoch", index=3) as epoch:
        epoch.set("loss", 0.25)

    @ergometer.region("step")
    def step(batch): ...

    run = ergometer.load("RUN")        # pandas frames: run.samples, run.regions, run.summary; or a study: study.runs
    run = ergometer.read_run("RUN")    # the files as they are, with or without pandas

Markers work when the program runs under ``ergometer run`` (which sets ERGOMETER_RUN); otherwise each is one branch.
"""

from .frames import LoadedRun, LoadedStudy, load
from .markers import Region, begin, end, number, region, text
from .reader import RunError, read_run

__all__ = ["LoadedRun", "LoadedStudy", "Region", "RunError", "begin", "end", "load", "number", "read_run", "region", "text"]
__version__ = "0.1.0"
