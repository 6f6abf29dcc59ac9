#!/usr/bin/env python3
"""The decorator with Triton's compiler, on a GPU that is not there (fake_device.py)."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

from package_test import HOME, main, need

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="kg-test-triton-"))
torch, triton = need("torch"), need("triton")
import triton.language as tl

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples" / "triton_gemm"))
import fake_device
import triton_gemm

import kernelgen
from kernelgen.triton import autotune, identity, launch_timer, records

DEVICE = "NVIDIA H100 80GB HBM3"


def config(rows, columns, depth=64, warps=4, stages=3, **more):
    return triton.Config(dict(BM=rows, BN=columns, BK=depth, GROUP=8), num_warps=warps, num_stages=stages, **more)


CONFIGS = [config(64, 32), config(64, 64), config(64, 128), config(128, 64), config(128, 128, warps=8),
           config(256, 256, 128, 8, 5)]


def arguments(m=256, n=256, k=256):
    tensors = (torch.empty(shape, dtype=torch.float16) for shape in ((m, k), (k, n), (m, n)))
    return triton_gemm._arguments(*tensors), triton_gemm._grid(m, n)


def milliseconds(named):
    """The larger the tile the better."""
    return 100.0 / (named["BM"] * named["BN"]) ** 0.5


class WithKernel(unittest.TestCase):
    kernel = triton_gemm.matmul_kernel
    milliseconds = staticmethod(milliseconds)

    def setUp(self):
        home = tempfile.TemporaryDirectory()
        self.addCleanup(home.cleanup)
        change = mock.patch.dict(os.environ, KERNELGEN_HOME=home.name)
        change.start()
        self.addCleanup(change.stop)
        self.fake = fake_device.Kernel(self.kernel, lambda named: self.milliseconds(named))
        self.fake.__enter__()
        self.addCleanup(self.fake.__exit__)

    def tuner(self, configs=CONFIGS, **options):
        return autotune(configs, key=["M", "N", "K"], **{"progress": False, "top": 1.0, **options})(self.kernel)

    def launches(self):
        found = list(self.fake.launches)
        self.fake.launches.clear()
        return found


class Tuning(WithKernel):
    def test_a_call_chooses_and_the_next_only_launches(self):
        tuner, (values, grid) = self.tuner(), arguments()
        tuner[grid](*values)
        self.assertIs(tuner.best_config, CONFIGS[4])
        self.assertEqual(list(tuner.cache.values()), [CONFIGS[4]])
        self.assertEqual(list(tuner.cache), [(256, 256, 256, *["torch.float16"] * 3)])
        self.assertNotIn(256 * 256, {one["BM"] * one["BN"] for one in self.launches()})  # refused by a rule
        tuner[grid](*values)
        (launch,) = self.launches()
        self.assertEqual((launch["BM"], launch["BN"], launch["grid"], launch["warmup"]), (128, 128, grid, False))

    def test_another_process_compiles_and_measures_nothing(self):
        values, grid = arguments()
        self.tuner()[grid](*values)
        self.launches()
        again = self.tuner(timer=lambda *_: self.fail("measured"))
        with mock.patch("kernelgen.triton.compiling.compile_all", side_effect=AssertionError("compiled")):
            again[grid](*values)
        self.assertEqual(len(self.launches()), 1)
        self.assertIs(again.best_config, CONFIGS[4])

    def test_a_changed_list_measures_what_is_new(self):
        values, grid = arguments()
        self.tuner(CONFIGS[:4])[grid](*values)
        tuner = self.tuner(CONFIGS[:5])
        tuner[grid](*values)
        self.assertEqual((tuner.last.measured, len(tuner.last.timings)), (1, 5))
        self.assertIs(tuner.best_config, CONFIGS[4])

    def test_other_alignment_is_another_place(self):
        values, grid = arguments()
        tuner = self.tuner()
        tuner[grid](*values)
        places = [identity.place_of(self.kernel, dict(zip(self.kernel.arg_names, some)), {"M": 256}, CONFIGS,
                                    fake_device.Driver().get_current_target(), None)
                  for some in (values, (values[0][:, 1:], *values[1:]), (*values[:3], 1, *values[4:]))]
        self.assertEqual(len(set(places)), 3)
        self.assertEqual(len({one.types for one in places}), 1)
        self.assertEqual((places[0].device, places[0].chip), (DEVICE, "sm_90"))

    def test_measures_while_the_rest_compiles(self):
        configs = [config(rows, columns, depth) for rows in (64, 128) for columns in (32, 64, 128) for depth in (32, 64, 128)]
        seen, (values, grid) = [], arguments(384, 384, 384)
        tuner = self.tuner(configs, workers=1)

        def timer(launch, incumbent):
            seen.append(tuner.last.compiled)
            return records.Timing(1.0 + len(seen), 1.0 + len(seen), 1.0 + len(seen), 1)
        tuner.make_timer = lambda: timer
        tuner[grid](*values)
        self.assertLess(min(seen), len(configs))

    def test_where_no_process_can_be_started_all_are_measured(self):
        values, grid = arguments()
        tuner = self.tuner(CONFIGS[:5], cache_results=False)
        with mock.patch("kernelgen.triton.compiling.sketch_all", side_effect=BlockingIOError("fork")), \
                mock.patch("kernelgen.triton.compiling.compile_all", side_effect=BlockingIOError("fork")), \
                self.assertLogs("kernelgen") as logged:
            tuner[grid](*values)
        self.assertIn("configs are not pruned", logged.output[0])
        self.assertIs(tuner.best_config, CONFIGS[4])

    def test_no_records_where_they_are_not_wanted(self):
        values, grid = arguments()
        self.tuner(cache_results=False)[grid](*values)
        self.assertEqual(list(Path(os.environ["KERNELGEN_HOME"]).rglob("*.jsonl")), [])

    def test_the_cache_is_the_users(self):
        values, grid = arguments()
        tuner = self.tuner()
        tuner[grid](*values)
        (key,) = tuner.cache
        tuner.cache[key] = CONFIGS[0]
        tuner[grid](*values)
        self.assertIs(tuner.best_config, CONFIGS[0])
        tuner.cache.clear()
        tuner[grid](*values)
        self.assertIs(tuner.best_config, CONFIGS[4])

    def test_named_arguments(self):
        values, grid = arguments()
        named = dict(zip(self.kernel.arg_names, values))
        tuner = self.tuner()
        tuner[grid](*values[:4], **{name: named[name] for name in self.kernel.arg_names[4:9]})
        tuner[grid](*values)
        self.assertEqual(len(tuner.cache), 1)

    def test_pruning_of_the_users_comes_first(self):
        values, grid = arguments()
        for rule in (dict(early_config_prune=lambda configs, named, **kwargs: [one for one in configs
                                                                               if one.kwargs["BM"] < named["M"] // 2]),
                     dict(perf_model=lambda **named: named["BM"] * named["BN"], top_k=3)):
            tuner = self.tuner(prune_configs_by=rule, cache_results=False)
            tuner[grid](*values)
            self.assertIs(tuner.best_config, CONFIGS[2])

    def test_this_packages_pruner_in_the_slot_is_not_asked_twice(self):
        values, grid = arguments()
        pruner = kernelgen.triton.prune(top=1)
        self.tuner(prune_configs_by={"early_config_prune": pruner})[grid](*values)
        self.assertIsNone(pruner.last)

    def test_a_name_for_the_registers(self):
        values, grid = arguments()
        tuner = self.tuner(CONFIGS[:2], maxnreg=(None, 96))
        self.assertEqual([one.maxnreg for one in tuner.configs], [None, 96, None, 96])
        self.fake.milliseconds = lambda named: 1.0 if named.get("maxnreg") else 2.0
        tuner[grid](*values)
        self.assertEqual(tuner.best_config.maxnreg, 96)
        self.assertEqual({one.stages for one in tuner.last.candidates}, {3})

    def test_replaced_code_is_told_apart_by_its_contents(self):
        if "ir_override" not in triton.Config({}).__dict__:
            self.skipTest("this Triton has no ir_override")
        with tempfile.NamedTemporaryFile("w", suffix=".ttgir") as file:
            words = []
            for text in ("one", "two"):
                file.seek(0)
                file.write(text)
                file.flush()
                words.append(identity.words_of(config(64, 64, ir_override=file.name)))
            self.assertNotEqual(*words)
            kept = autotune([config(64, 64, ir_override=file.name)], key=[], maxnreg=(None, 64))(self.kernel)
            self.assertEqual([one.ir_override for one in kept.configs], [file.name] * 2)


class Frozen(WithKernel):
    def test_nearest_and_misses(self):
        for size in (256, 1024):
            values, grid = arguments(size, size, size)
            self.fake.milliseconds = milliseconds if size == 256 else lambda named: 1.0 / milliseconds(named)
            self.tuner()[grid](*values)
        frozen = self.tuner(frozen=True, timer=lambda *_: self.fail("measured"))
        self.launches()
        with self.assertLogs("kernelgen") as logged:
            for size in (256, 320, 320, 896, 320):
                values, grid = arguments(size, size, size)
                frozen[grid](*values)
        self.assertEqual([one["BN"] for one in self.launches()], [128, 128, 128, 32, 128])
        self.assertEqual({key[0]: count for key, count in frozen.misses.items()}, {320: 3, 896: 1})
        self.assertEqual(len(logged.output), 2)
        self.assertIn("M=256, N=256, K=256", logged.output[0])

    def test_nothing_is_known(self):
        with mock.patch.dict(os.environ, KERNELGEN_FROZEN="1"), self.assertLogs("kernelgen") as logged:
            values, grid = arguments()
            tuner = self.tuner(timer=lambda *_: self.fail("measured"))
            tuner[grid](*values)
        self.assertIs(tuner.best_config, CONFIGS[0])
        self.assertIn("the first config is used", logged.output[0])

    def test_while_a_graph_is_captured_nothing_is_measured_nor_decided(self):
        values, grid = arguments()
        tuner = self.tuner()
        with mock.patch("torch.cuda.is_available", return_value=True), \
                mock.patch("torch.cuda.is_current_stream_capturing", return_value=True), \
                self.assertLogs("kernelgen") as logged:
            tuner[grid](*values)
        self.assertIn("a graph is being captured", logged.output[0])
        self.assertEqual(len(self.launches()), 1)
        tuner[grid](*values)
        self.assertIs(tuner.best_config, CONFIGS[4])

    def test_shipped_configs(self):
        values, grid = arguments()
        tuner = self.tuner()
        tuner[grid](*values)
        (path,) = tuner.save(os.environ["KERNELGEN_HOME"] + "/shipped")
        self.assertEqual(path.name, f"matmul_kernel.NVIDIA_H100_80GB_HBM3.triton-{triton.__version__}.json")
        with tempfile.TemporaryDirectory() as home, mock.patch.dict(os.environ, KERNELGEN_HOME=home):
            other = self.tuner(shipped=path.parent, timer=lambda *_: self.fail("measured"))
            other[grid](*values)
            self.assertIs(other.best_config, CONFIGS[4])
            third = self.tuner(frozen=True)
            self.assertEqual(third.load(path), 1)
            third[grid](*values)
            self.assertEqual((third.best_config, third.misses), (CONFIGS[4], {}))

    def test_ahead_of_time(self):
        tuner = self.tuner()
        values, grid = arguments(192, 192, 192)
        meta = tuple(torch.empty(192, 192, dtype=torch.float16, device="meta") for _ in range(3))
        described = [((128, 64), torch.float16), ((64, 128), torch.float16), ((128, 128), torch.float16), 128, 128, 64,
                     64, 128, 128]
        found = tuner.warmup([(*meta, *values[3:]), dict(zip(self.kernel.arg_names, described))], grid=grid)
        self.assertEqual(found, [CONFIGS[4]] * 2)
        self.assertEqual([key[:3] for key in tuner.cache], [(192, 192, 192), (128, 128, 64)])
        measured = len(self.launches())
        tuner[grid](*values)
        self.assertEqual(len(self.launches()), 1)
        self.assertGreater(measured, 5)


class Hooks(WithKernel):
    def test_all_run_for_each_launch(self):
        told = []
        configs = [config(64, 32, pre_hook=lambda named: told.append("config")), *CONFIGS[:2]]
        tuner = self.tuner(configs, pre_hook=lambda named, reset_only=False: told.append("reset" if reset_only else "pre"),
                           post_hook=lambda named, exception: told.append("post"), cache_results=False)
        self.fake.milliseconds = lambda named: told.append("run") or (1.0 if named["BN"] == 32 else 3.0)
        values, grid = arguments()
        tuner[grid](*values)
        self.assertEqual(told[-3:], ["reset", "config", "run"])
        runs = [index for index, what in enumerate(told[:-3]) if what == "run"]
        self.assertTrue(all(told[index - 1] == "pre" and told[index + 1] == "post" for index in runs))
        self.assertIn("config", told[:-3])
        self.assertEqual(tuner.best_config.kwargs["BN"], 32)


@triton.jit
def accumulate_kernel(x, y, N, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + places, tl.load(x + places, places < N, other=0) + tl.load(y + places, places < N, other=0), places < N)


class InPlace(WithKernel):
    kernel = accumulate_kernel

    def setUp(self):
        super().setUp()
        self.x, self.y = torch.ones(1024), torch.zeros(1024)

        def run(named):
            named["y"] += named["x"]
            return 1.0
        self.fake.milliseconds = run

    def test_results_are_those_of_one_launch(self):
        configs = [triton.Config(dict(BLOCK=size)) for size in (128, 256, 512)]
        tuner = autotune(configs, key=["N"], progress=False, cache_results=False)(self.kernel)
        with self.assertLogs("kernelgen") as logged:
            tuner[(8,)](self.x, self.y, 1024)
        self.assertEqual(self.y.unique().tolist(), [1.0])
        self.assertGreater(len(self.fake.launches), 20)
        self.assertIn('restore_value=["y"]', logged.output[0])

    def test_restore_value_and_reset_to_zero(self):
        configs = [triton.Config(dict(BLOCK=size)) for size in (128, 256)]
        self.y += 5
        for option, expected in (("restore_value", 6.0), ("reset_to_zero", 1.0)):
            tuner = autotune(configs, key=["N"], progress=False, cache_results=False, **{option: ["y"]})(self.kernel)
            with self.assertNoLogs("kernelgen"):
                tuner[(8,)](self.x, self.y, 1024)
            self.assertEqual(self.y.unique().tolist(), [expected])

    def test_an_output_that_is_an_input(self):
        configs = [triton.Config(dict(BLOCK=size)) for size in (128, 256)]
        tuner = autotune(configs, key=["N"], progress=False, cache_results=False, restore_value=["x"])(self.kernel)
        with self.assertLogs("kernelgen"):
            tuner[(8,)](self.x, self.x, 1024)
        self.assertEqual(self.x.unique().tolist(), [2.0])


class Timer(WithKernel):
    def launch(self, ms):
        def run():
            fake_device.Clock.now += ms
        return launch_timer.Launch(run)

    def test_medians_without_flushes_and_hooks(self):
        timer = launch_timer.DeviceTimer()
        slow = launch_timer.Launch(self.launch(0.25).run, before=self.launch(7).run, after=lambda error: None)
        found = timer(slow, None)
        self.assertAlmostEqual(found.ms, 0.25)
        self.assertEqual(found.count, 100)
        self.assertEqual(timer(self.launch(3.0), 1.0).count, launch_timer.COARSE_SAMPLES)
        self.assertEqual(timer(self.launch(3.0), 2.5).count, launch_timer.LEAST_SAMPLES)

    def test_a_kernel_without_end(self):
        timer = launch_timer.DeviceTimer(deadline=0.2)
        with mock.patch.object(fake_device.Event, "query", lambda self: False), self.assertRaises(launch_timer.Hung):
            timer(self.launch(1.0), None)

    def test_a_device_that_is_lost(self):
        def query(event):
            raise RuntimeError("CUDA error: an illegal instruction was encountered\nmore")
        with mock.patch.object(fake_device.Event, "query", query), self.assertRaisesRegex(launch_timer.Lost, "illegal"):
            launch_timer.DeviceTimer()(self.launch(1.0), None)


    def test_a_launch_that_loses_the_device(self):
        def run(named):
            raise RuntimeError("CUDA error: misaligned address")
        self.fake.milliseconds = run
        driver = self.fake.driver
        driver.interface.synchronize = mock.Mock(side_effect=RuntimeError("CUDA error: misaligned address"))
        values, grid = arguments()
        with self.assertRaisesRegex(launch_timer.Lost, "misaligned.*restart the process"):
            self.tuner()[grid](*values)
        driver.interface.synchronize = lambda: None
        self.fake.milliseconds = milliseconds
        again = self.tuner()
        again[grid](*values)
        self.assertEqual(sum("failed before" in (one.reason or "") for one in again.last.candidates), 2)


KILLED = """
import sys, time
sys.path[:0] = {paths!r}
import torch_tuning as tests
tests.unittest.main = None
values, grid = tests.arguments()
def slow(named):
    time.sleep(0.02)
    return tests.milliseconds(named)
with tests.fake_device.Kernel(tests.triton_gemm.matmul_kernel, slow):
    tuner = tests.autotune(tests.CONFIGS, key=["M", "N", "K"], top=1.0, progress=False)(tests.triton_gemm.matmul_kernel)
    tuner[grid](*values)
    print(tuner.last.measured, len(tuner.last.timings), tuner.best_config.kwargs["BM"])
"""


class Killed(unittest.TestCase):
    def test_what_was_measured_is_not_measured_again(self):
        home = tempfile.mkdtemp(dir=HOME)
        words = [sys.executable, "-c", KILLED.format(paths=[str(Path(__file__).parent)])]
        environment = dict(os.environ, KERNELGEN_TEST_IMPORT="1", KERNELGEN_TEST_HOME=home)

        def timed():
            return [line for path in Path(home).rglob("*.jsonl") for line in path.read_text().splitlines()
                    if '"timed"' in line]
        process = subprocess.Popen(words, env=environment, start_new_session=True)
        begin = time.monotonic()
        while len(timed()) < 2 and process.poll() is None and time.monotonic() - begin < 120:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        before = len(timed())
        self.assertIn(before, (2, 3))
        ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        self.assertEqual(ran.stdout.split(), [str(5 - before), "5", "128"], ran.stderr)


TOGETHER = KILLED.replace("tuner.last.measured, len(tuner.last.timings)", "tuner.last.measured if tuner.last else 0, 0")


class Together(unittest.TestCase):
    def test_one_process_tunes_and_the_others_wait_for_it(self):
        home = tempfile.mkdtemp(dir=HOME)
        environment = dict(os.environ, KERNELGEN_TEST_IMPORT="1", KERNELGEN_TEST_HOME=home)
        words = [sys.executable, "-c", TOGETHER.format(paths=[str(Path(__file__).parent)])]
        processes = [subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        found = [process.communicate()[0].split() for process in processes]
        self.assertEqual(sorted(int(one[0]) for one in found), [0, 0, 5])
        self.assertEqual({one[2] for one in found}, {"128"})


RANK = """
import sys, time, torch.distributed as distributed
from kernelgen.triton import ranks
from kernelgen.triton.records import Place
rank = int(sys.argv[1])
distributed.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
time.sleep(rank)
place = Place("k", "s", (("M", 3),), "", "", "d", "c", "t")
print(ranks.agree(place, "list", f"X={rank}"), ranks.agree(place, f"of rank {rank} alone", f"Y={rank}"))
distributed.barrier()
"""


class Ranks(unittest.TestCase):
    def test_the_store_of_a_process_group(self):
        with tempfile.TemporaryDirectory() as folder:
            processes = [subprocess.Popen([sys.executable, "-c", RANK, str(rank), folder + "/store"],
                                          stdout=subprocess.PIPE, text=True) for rank in range(2)]
            found = [process.communicate()[0].split()[-2:] for process in processes]
        self.assertEqual(found, [["X=0", "Y=0"], ["X=0", "Y=1"]])


class Interpreter(unittest.TestCase):
    def test_the_first_config_is_used(self):
        example = Path(triton_gemm.__file__).with_name("test_asm_aware.py")
        ran = subprocess.run([sys.executable, str(example)], env=dict(os.environ, TRITON_INTERPRET="1"),
                             capture_output=True, text=True)
        if "in baseline_opt" in ran.stderr:
            self.skipTest("Triton's interpreter does not run here, without a tuner either: its NumPy is too new")
        self.assertIn("All tests passed!", ran.stdout, ran.stderr)


if os.environ.get("KERNELGEN_TEST_IMPORT"):
    os.environ["KERNELGEN_HOME"] = os.environ["KERNELGEN_TEST_HOME"]
else:
    main()
