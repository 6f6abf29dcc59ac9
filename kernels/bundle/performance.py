# The skeleton of NAME_performance.py. What an op adds stands behind the line of the definition.

import argparse
import importlib.util
import json
import math
import pathlib
import statistics
import sys
import time


# ---- The definition ----

ROUNDS = 31  # of each candidate, in turn
WARM_UP = 0.2  # seconds


def load(path):
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def beside(role):
    return pathlib.Path(__file__).with_name(f"{NAME}_{role}.py")


accuracy = load(beside("accuracy"))
torch = accuracy.torch


# ---- Timing ----


class Clock:
    """Times calls one at a time, with the last-level cache flushed before each."""

    def __init__(self, device):
        self.device = device
        self.module = getattr(torch, device.type, None)
        if device.type == "cpu":
            return
        # Reading it takes longer than the host needs for a call, which is under way meanwhile.
        self.flushed = torch.zeros(1 << 28, dtype=torch.int32, device=device)

    def once(self, call):
        """Seconds."""
        if self.device.type == "cpu":
            begin = time.perf_counter()
            call()
            return time.perf_counter() - begin
        first, last = (self.module.Event(enable_timing=True) for _ in range(2))
        self.flushed.amax()
        first.record()
        call()
        last.record()
        self.module.synchronize()
        return first.elapsed_time(last) / 1e3

    def race(self, calls):
        """name -> (median, spread) of calls that are timed in turn. The spread is the distance of
        the quartiles over the median."""
        begin = time.perf_counter()
        while time.perf_counter() - begin < WARM_UP:
            for call in calls.values():
                call()
                if self.device.type == "cpu":
                    break
        samples = {name: [] for name in calls}
        for _ in range(3 if self.device.type == "cpu" else ROUNDS):
            for name, call in calls.items():
                samples[name].append(self.once(call))
        found = {}
        for name, times in samples.items():
            low, median, high = statistics.quantiles(times, n=4)
            found[name] = (median, (high - low) / median if median else 0.0)
        return found

    def bandwidth(self):
        """Bytes a second of a copy in the device's memory."""
        x = torch.empty(1 << 28, dtype=torch.int8, device=self.device)
        y = torch.empty_like(x)
        return 2 * x.numel() / self.race({"copy": lambda: y.copy_(x)})["copy"][0]


# ---- What is timed ----


def bytes_of(tensors):
    return sum(x.numel() * x.element_size() for x in tensors)


def calls_for(sizes, dtypes, device, kernel, baseline, compiled):
    """name -> a call without arguments, and the bytes of all tensors."""
    generator = torch.Generator().manual_seed(1)
    drawn = accuracy.draw_inputs("normal", sizes, dtypes, generator)
    inputs = [x.to(device) for x in drawn.values()]
    named = ({name: sizes[name] for name in accuracy.SIZE_ARGUMENTS}
             | accuracy.dtype_arguments(dtypes))
    if not inputs:
        named["device"] = device
    first, other = kernel(*inputs, **named), baseline(*inputs, **named)
    pairs = [list(x) if isinstance(x, (tuple, list)) else [x] for x in (first, other)]
    for name, x, y in zip(accuracy.OUTPUTS, *pairs):
        if x.shape != y.shape or x.dtype != y.dtype:
            raise accuracy.Unusable(f"the baseline's {name} is {tuple(y.shape)} of {y.dtype}, "
                                    f"and the kernel's {tuple(x.shape)} of {x.dtype}")
    calls = {"baseline": lambda: baseline(*inputs, **named),
             "triton": lambda: kernel(*inputs, **named)}
    if compiled:
        calls["compiled"] = lambda: compiled(*inputs, **named)
    return calls, bytes_of(inputs + pairs[0])


def measure(sizes, dtypes, clock, functions, bandwidth):
    calls, moved = calls_for(sizes, dtypes, clock.device, *functions)
    times = clock.race(calls)
    work = next((row for row in WORK if row["sizes"] == sizes), None)
    seconds = times["triton"][0]
    found = {"shape": sizes, "dtypes": dtypes,
             **{f"{name}_ms": value[0] * 1e3 for name, value in times.items()},
             **{f"{name}_spread": value[1] for name, value in times.items()},
             "speedup": times["baseline"][0] / seconds,
             "gigabytes_per_second": moved / seconds / 1e9}
    if "compiled" in times:
        found["speedup_over_compiled"] = times["compiled"][0] / seconds
    if work and work["operations"]:
        found["tflops"] = work["operations"] / seconds / 1e12
        found["is_compute_bound"] = work["operations"] / max(1, moved) > 64
    if bandwidth:
        found["share_of_bandwidth"] = moved / seconds / bandwidth
    return found


def said_of(found):
    lines = [f"Baseline time: {found['baseline_ms']:.4f} ms "
             f"(spread {found['baseline_spread']:.1%})"]
    if "compiled_ms" in found:
        lines += [f"torch.compile time: {found['compiled_ms']:.4f} ms "
                  f"(spread {found['compiled_spread']:.1%})"]
    lines += [f"Triton time: {found['triton_ms']:.4f} ms (spread {found['triton_spread']:.1%})",
              f"Speedup: {found['speedup']:.4f}x"]
    if "speedup_over_compiled" in found:
        lines[-1] += f", over torch.compile {found['speedup_over_compiled']:.4f}x"
    if found.get("is_compute_bound"):
        lines += [f"Throughput: {found['tflops']:.2f} TFLOPS"]
    else:
        share = found.get("share_of_bandwidth")
        lines += [f"Throughput: {found['gigabytes_per_second']:.1f} GB/s"
                  + (f", {share:.1%} of what a copy reaches" if share else "")]
    return "\n".join(lines)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def judge_accuracy(options):
    """The accuracy test of the same kernel, device and dtypes: its report."""
    words = ["--device", options.device] + (["--kernel", options.kernel] if options.kernel else [])
    for dtype in options.dtype or []:
        words += ["--dtype", dtype]
    return accuracy.test(accuracy.parse(words), say=lambda text: None)


def test(options, say=print):
    device = accuracy.choose_device(options.device)
    say(f"Testing {NAME} accuracy first...")
    judged = judge_accuracy(options)
    if not judged["passed"]:
        say("Accuracy test FAILED! Performance test skipped.")
        say(f"✗ {judged['failures'][0]['reason']}")
        return {"op": NAME, "device": options.device, "accuracy": judged, "status": 1}
    say(f"✓ Test passed: max_diff = {judged['max_diff']:.6g}\n")
    is_cpu = device.type == "cpu"
    rows = ([accuracy.sizes_from(word) for word in options.shape] if options.shape
            else [] if is_cpu else [row["sizes"] for row in WORK])
    if is_cpu:
        say("Note: this is Triton's interpreter; times mean nothing. "
            + ("" if rows else "With --shape one small shape is run."))
    kernel = accuracy.load_kernel(options.kernel or beside("triton"))
    baseline = accuracy.load_kernel(beside("baseline"))
    compiled = None if is_cpu or options.no_compile else torch.compile(baseline)
    clock = Clock(device)
    bandwidth = 0.0 if is_cpu else clock.bandwidth()
    say(f"Testing {NAME} performance...")
    found = []
    for dtypes in accuracy.bound_dtypes(options.dtype)[:None if options.dtype else 1]:
        for sizes in rows:
            say(f"Shape: {accuracy.said(sizes)}"
                + "".join(f", {name} = {dtype}" for name, dtype in dtypes.items()))
            found.append(measure(sizes, dtypes, clock, (kernel, baseline, compiled), bandwidth))
            say(said_of(found[-1]) + "\n")
    report = {"op": NAME, "device": options.device, "goal": SPEEDUP, "shapes": found,
              "accuracy": judged, "status": 0}
    if not is_cpu:
        report["device_name"] = getattr(torch, device.type).get_device_name()
        report["copy_gigabytes_per_second"] = bandwidth / 1e9
    if found:
        report["average_speedup"] = geometric_mean([one["speedup"] for one in found])
        say(f"Average speedup: {report['average_speedup']:.4f}x (geometric mean)")
        over = [one["speedup_over_compiled"] for one in found if "speedup_over_compiled" in one]
        if over:
            report["average_speedup_over_compiled"] = geometric_mean(over)
            say(f"Average speedup over torch.compile: {geometric_mean(over):.4f}x")
    say("All performance tests completed!")
    if found and not is_cpu:
        passed = report["average_speedup"] >= SPEEDUP
        report["status"] = 0 if passed else 4
        say("Optimization PASSED!" if passed else
            f"Optimization NOT PASSED. Target: {SPEEDUP}, Actual: {report['average_speedup']:.4f}")
    return report


def main(words=None):
    parser = argparse.ArgumentParser(
        description=f"Times {NAME} against its baseline, once its accuracy test has passed.",
        epilog=(
            "Exit status: 0 the goal's speed-up is met, 1 the accuracy test failed, 2 bad usage, 3 "
            "the machine lacks something, 4 it is right and slower than the goal."))
    parser.add_argument("--device", choices=("cuda", "npu", "cpu"), default="cuda")
    parser.add_argument("--kernel", metavar="FILE", help="another module with the function")
    parser.add_argument("--shape", action="append", metavar="P=4096,D=1000",
                        help="these sizes instead; may be repeated")
    parser.add_argument("--dtype", action="append", metavar="T=f16", help="default: the first")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    parser.add_argument("--json", action="store_true", help="prints one JSON object")
    parser.add_argument("--verbose", action="store_true", help="prints the accuracy report, too")
    options = parser.parse_args(words)
    try:
        report = test(options, say=(lambda text: None) if options.json else print)
    except accuracy.Unusable as reason:
        print(f"{NAME}: {reason}", file=sys.stderr)
        return reason.status
    if options.json:
        print(json.dumps(report))
    elif options.verbose:
        print(json.dumps(report["accuracy"], indent=2))
    return report["status"]


if __name__ == "__main__":
    sys.exit(main())
