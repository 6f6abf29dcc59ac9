"""How the table's times are taken.

Cold: all contenders of a line take turns, another one first each time; before each run the L2 is
overwritten, or, where a worker asks for it, filled by reading other bytes, as weights of other
layers would fill it; device events around it; the median counts. What was overwritten is written
back while the next kernel reads, 5 us of its time on an H100. Graph: some runs of a contender are recorded
and replayed, again by turns, with whatever the caches hold. Host: calls without waiting, less what
Python takes for a call of C that does nothing.
"""

import ctypes
import statistics
import time

import torch

RUNS = 15
FLUSH = 1 << 28


def medians(samples):
    return {name: statistics.median(values) for name, values in samples.items()}


class Clock:
    def __init__(self, stream, reads=False):
        self.stream = stream
        self.flushed = torch.zeros(FLUSH // 4, dtype=torch.float32, device="cuda")
        self.sum = torch.empty((), dtype=torch.float32, device="cuda") if reads else None

    def _flush(self):
        if self.sum is None:
            self.flushed.zero_()
        else:
            torch.sum(self.flushed, dim=0, out=self.sum)

    def _take(self, run, flush):
        if flush:
            self._flush()
        marks = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        marks[0].record(self.stream)
        run()
        marks[1].record(self.stream)
        return marks

    def race(self, runs, turns, flush):
        """Microseconds of every turn, by name; two more turns warm up."""
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
        return samples

    def cold(self, runs):
        """Median microseconds by name; what ran first tells how many turns there is time for."""
        for run in runs.values():
            run()
        start, stop = self._take(next(iter(runs.values())), True)
        self.stream.synchronize()
        return medians(self.race(runs, RUNS if start.elapsed_time(stop) < 2 else 7, True))

    def record(self, run, microseconds):
        """A graph of as many runs as fill some time, and their number."""
        count = max(1, min(50, int(600 / microseconds)))
        graph = torch.cuda.CUDAGraph()
        self.stream.synchronize()
        # torch.cuda.graph would collect garbage first, every time.
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            for _ in range(count):
                run()
        finally:
            graph.capture_end()
        return graph, count

    def replay(self, graphs, turns):
        """Microseconds of one run inside its graph: of every turn, by name."""
        samples = self.race({name: graph.replay for name, (graph, _) in graphs.items()}, turns,
                            False)
        return {name: [value / graphs[name][1] for value in values]
                for name, values in samples.items()}

    def graph(self, runs, cold):
        """Median microseconds of one run inside a graph, by name."""
        return medians(self.replay({name: self.record(run, cold[name])
                                    for name, run in runs.items()}, 5))

    def host(self, plan_run, plan_arguments):
        """Microseconds of the host for one call of a plan; fewer than a queue holds at a time.

        At several moments, as neighbours of a shared machine disturb tens of milliseconds at a time.
        """
        nothing = ctypes.CDLL(None).labs  # takes its one argument and ignores the others
        calls, batches, moments, apart = 200, 9, 7, 0.05

        def batch(function):
            self.stream.synchronize()
            began = time.perf_counter_ns()
            for _ in range(calls):
                function(*plan_arguments)
            return (time.perf_counter_ns() - began) * 1e-3 / calls
        ours, idle = [], []
        for _ in range(moments):
            for _ in range(batches):
                ours.append(batch(plan_run))
                idle.append(batch(nothing))
            time.sleep(apart)
        self.stream.synchronize()
        return statistics.median(ours) - statistics.median(idle)
