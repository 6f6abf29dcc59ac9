"""How the table's times are taken.

Cold: all contenders of a line take turns, another one first each time; the L2 is overwritten before
each run; device events around it; the median counts. Graph: some runs of a contender are recorded
and replayed, again by turns, with whatever the caches hold. Host: calls without waiting, less what
Python takes for a call of C that does nothing.
"""

import ctypes
import statistics
import time

import torch

RUNS = 15
FLUSH = 1 << 28


class Clock:
    def __init__(self, stream):
        self.stream = stream
        self.flushed = torch.empty(FLUSH, dtype=torch.uint8, device="cuda")

    def _take(self, run, flush):
        if flush:
            self.flushed.zero_()
        marks = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        marks[0].record(self.stream)
        run()
        marks[1].record(self.stream)
        return marks

    def _race(self, runs, turns, flush):
        """Median microseconds by name; the first two turns warm up."""
        names, samples = list(runs), {name: [] for name in runs}
        for turn in range(turns + 2):
            marks = {}
            for i in range(len(names)):
                name = names[(i + turn) % len(names)]
                marks[name] = self._take(runs[name], flush)
            self.stream.synchronize()
            for name, (start, stop) in marks.items():
                if turn >= 2:
                    samples[name].append(start.elapsed_time(stop) * 1e3)
        return {name: statistics.median(values) for name, values in samples.items()}

    def cold(self, runs):
        """What ran first tells how many turns there is time for."""
        for run in runs.values():
            run()
        start, stop = self._take(next(iter(runs.values())), True)
        self.stream.synchronize()
        return self._race(runs, RUNS if start.elapsed_time(stop) < 2 else 7, True)

    def graph(self, runs, cold):
        """Microseconds of one run inside a graph."""
        graphs, counts = {}, {}
        self.stream.synchronize()
        for name, run in runs.items():
            counts[name] = max(1, min(50, int(600 / cold[name])))
            graphs[name] = torch.cuda.CUDAGraph()
            # torch.cuda.graph would collect garbage first, every time.
            graphs[name].capture_begin(capture_error_mode="thread_local")
            for _ in range(counts[name]):
                run()
            graphs[name].capture_end()
        times = self._race({name: graph.replay for name, graph in graphs.items()}, 5, False)
        return {name: times[name] / counts[name] for name in times}

    def host(self, plan_run, plan_arguments):
        """Microseconds of the host for one call of a plan; fewer than a queue holds at a time."""
        nothing = ctypes.CDLL(None).labs  # takes its one argument and ignores the others
        calls = 200

        def batch(function):
            self.stream.synchronize()
            began = time.perf_counter_ns()
            for _ in range(calls):
                function(*plan_arguments)
            return (time.perf_counter_ns() - began) * 1e-3 / calls
        ours = [batch(plan_run) for _ in range(15)]
        idle = [batch(nothing) for _ in range(15)]
        self.stream.synchronize()
        return statistics.median(ours) - statistics.median(idle)
