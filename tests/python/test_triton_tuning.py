#!/usr/bin/env python3
"""The decorator's parts that need no Triton: records, winners, the nearest config, the search, dispatch, progress."""

import errno
import io
import json
import multiprocessing
import os
import random
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from package_test import main

import kernelgen
from kernelgen.triton import (dispatch, known, launch_timer, progress, ranks, records, search, updates, warming,
                              winners)
from kernelgen.triton.records import Place, Record, Timing


def place(m=1024, n=1024, **members):
    given = dict(kernel="matmul", source="s" * 64, key=(("M", m), ("N", n)), types="a:*fp16", alignment="a",
                 device="NVIDIA H100", chip="sm_90", triton="3.6.0")
    return Place(**{**given, **members})


def timing(ms, spread=0.001, count=10):
    return Timing(ms, ms * (1 - spread), ms * (1 + spread), count)


def timed(config, ms, at=None):
    return Record(at or place(), config, "timed", timing(ms))


def won(config, at=None, asked="list"):
    return Record(at or place(), config, "winner", timing(1.0), asked=asked)


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "triton" / "matmul.jsonl"

    def known(self):
        found = known.Known(records.File(self.path))
        found.refresh()
        return found


class Records(InFolder):
    def test_lines_come_back(self):
        written = [timed("X=1", 2.5), won("X=1"), Record(place(), "X=2", "failed", reason="too large", is_final=False),
                   Record(place(key=(("f", 0.5), ("s", "a\nb"), ("n", None), ("b", True))), "X=3", "deadline", reason="60 s")]
        file = records.File(self.path)
        for one in written:
            file.append(one)
        self.assertEqual(records.File(self.path).new_records(), written)
        self.assertEqual(file.new_records(), written)
        file.append(written[0])
        self.assertEqual(file.new_records(), written[:1])

    def test_half_a_line_is_skipped_and_what_follows_is_not(self):
        file = records.File(self.path)
        file.append(timed("X=1", 1.0))
        whole = self.path.read_bytes()
        for cut in (1, 20, len(whole) - 2):
            self.path.write_bytes(whole + whole[:cut])
            self.assertEqual(len(records.File(self.path).new_records()), 1)
            records.File(self.path).append(timed("X=2", 2.0))
            self.assertEqual([one.config for one in records.File(self.path).new_records()], ["X=1", "X=2"])

    def test_hostile_lines(self):
        good = json.loads(records.as_line(timed("X=1", 1.0)))
        bad = [b"", b"null", b"[1]", b"{}", b"\x00\xff", b'"' * 99, b"[" * 100000, b"1" * 100000, b'{"v": 1' + b" " * 70000,
               *(json.dumps({**good, name: value}).encode() for name, value in (
                   ("v", 2), ("ms", -1), ("ms", 0), ("ms", "1"), ("ms", True), ("ms", None), ("low", 10 ** 400),
                   ("key", []), ("key", {"M": [1]}), ("key", {"M": 10 ** 30}), ("config", 3), ("device", None),
                   ("verdict", "best"), ("verdict", ["timed"]), ("count", 1.5), ("reason", 1), ("asked", {}))),
               json.dumps(good).replace('"ms": 1.0', '"ms": NaN').encode(),
               json.dumps(good).replace('"ms": 1.0', '"ms": 1e999').encode()]
        self.path.parent.mkdir()
        self.path.write_bytes(b"\n".join([*bad, json.dumps(good).encode(), *bad, b""]))
        self.assertEqual(records.File(self.path).new_records(), [timed("X=1", 1.0)])

    def test_flipped_bytes(self):
        line, choose = records.as_line(won("X=1")), random.Random(1)
        for _ in range(2000):
            changed = bytearray(line)
            for _ in range(choose.randint(1, 4)):
                changed[choose.randrange(len(line) - 1)] = choose.randrange(256)
            for part in bytes(changed).split(b"\n"):
                records.from_line(part)

    def test_a_full_disk_is_said_once_and_nothing_else(self):
        file = records.File(self.path)
        file.append(timed("X=1", 1.0))
        with mock.patch("os.write", side_effect=OSError(errno.ENOSPC, "No space left on device")), \
                self.assertLogs("kernelgen") as logged:
            file.append(timed("X=2", 1.0))
            file.append(timed("X=3", 1.0))
        self.assertEqual(len(logged.output), 1)
        self.assertIn("will not be remembered", logged.output[0])

    def test_half_written_lines_are_taken_back(self):
        file, write = records.File(self.path), os.write
        file.append(timed("X=1", 1.0))
        size = self.path.stat().st_size
        with mock.patch("os.write", side_effect=lambda number, data: write(number, data[:30])), self.assertLogs("kernelgen"):
            file.append(timed("X=2", 1.0))
        self.assertEqual(self.path.stat().st_size, size)

    def test_without_a_folder_what_is_found_out_still_counts(self):
        found = known.Known(records.File(Path("/proc/nowhere/x.jsonl")))
        with self.assertLogs("kernelgen"):
            found.add(timed("X=1", 1.0))
            self.assertEqual(found.settle(won("X=1")).config, "X=1")
        self.assertEqual(len(found.timings(place())["X=1"]), 1)
        self.assertEqual(found.winner(place(), "list").config, "X=1")

    def test_processes_do_not_mix_their_lines(self):
        context = multiprocessing.get_context("fork")
        workers = [context.Process(target=append_many, args=(self.path, number)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(len(records.File(self.path).new_records()), 4 * 50)
        self.assertEqual(self.path.read_bytes().count(b"\n"), 4 * 50)


def append_many(path, number):
    file = records.File(path)
    for index in range(50):
        file.append(timed(f"X={number} Y={'y' * (index * 40)}", 1.0))
    os._exit(0)


def settle_one(path, number, queue):
    queue.put(known.Known(records.File(path)).settle(won(f"X={number}")).config)
    queue.close()
    queue.join_thread()
    os._exit(0)


class KnownConfigs(InFolder):
    def test_winners_hold_for_their_list(self):
        self.known().settle(won("X=1", asked="one list"))
        self.assertEqual(self.known().winner(place(), "one list").config, "X=1")
        self.assertIsNone(self.known().winner(place(), "another list"))
        self.assertIsNone(self.known().winner(place(2048), "one list"))

    def test_all_processes_have_the_winner_of_the_first(self):
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        workers = [context.Process(target=settle_one, args=(self.path, number, queue)) for number in range(6)]
        for worker in workers:
            worker.start()
        found = [queue.get(timeout=60) for _ in workers]
        for worker in workers:
            worker.join()
        self.assertEqual(len(set(found)), 1)
        self.assertEqual(sum(one.verdict == "winner" for one in records.File(self.path).new_records()), 1)

    def test_failures_that_may_pass_are_tried_again(self):
        found = self.known()
        found.add(Record(place(), "X=1", "failed", reason="no memory", is_final=False))
        found.add(Record(place(), "X=2", "failed", reason="too large"))
        self.assertEqual(self.known().failures(place()), {"X=2": "too large"})

    def test_shipped_files(self):
        folder = self.path.parent / "shipped"
        written = known.save(folder, [won("X=1"), won("X=2", place(2048)), won("X=3", place(device="NVIDIA H200")),
                                      won("X=4", place(triton="3.9.0"))])
        self.assertEqual([path.name for path in written],
                         ["matmul.NVIDIA_H100.triton-3.6.0.json", "matmul.NVIDIA_H100.triton-3.9.0.json",
                          "matmul.NVIDIA_H200.triton-3.6.0.json"])
        self.assertEqual(sorted(one.config for one in known.load(folder)), ["X=1", "X=2", "X=3", "X=4"])
        before = written[0].read_bytes()
        known.save(folder, [won("X=2", place(2048))])
        self.assertEqual(written[0].read_bytes(), before)
        known.save(folder, [won("X=9")])
        self.assertEqual(sorted(one.config for one in known.load(written[0])), ["X=2", "X=9"])

    def test_files_that_are_none_are_refused(self):
        path = self.path.parent / "x.json"
        path.parent.mkdir()
        entry = json.loads(records.as_line(timed("X=1", 1.0)))
        for text, words in (("{", "is no JSON"), ("[]", "has no"), ('{"format": "x", "configs": []}', "has no"),
                            (json.dumps({"format": known.FORMAT, "configs": [entry]}), "entry 0"),
                            (json.dumps({"format": known.FORMAT, "configs": [3, 4]}), "and 1 more")):
            path.write_text(text)
            with self.assertRaisesRegex(kernelgen.ArgumentError, words):
                known.load(path)
        with self.assertRaisesRegex(kernelgen.ArgumentError, "cannot be read"):
            known.load(path.parent / "none.json")


class Winners(unittest.TestCase):
    def test_within_noise_the_earlier_wins(self):
        self.assertEqual(winners.winner({0: timing(1.002), 1: timing(1.0), 2: timing(1.001)}), 0)
        self.assertEqual(winners.winner({0: timing(1.02), 1: timing(1.0), 2: timing(1.001)}), 1)
        self.assertEqual(winners.winner({0: timing(1.008), 1: timing(1.0, 0.02)}), 0)
        self.assertEqual(winners.winner({0: timing(1.5), 1: timing(1.0, 0.9)}), 1)

    def test_finalists(self):
        found = {index: timing(1 + index / 100) for index in range(20)}
        self.assertEqual(winners.finalists(found), [0, 1, 2, 3, 4, 5])
        self.assertEqual(winners.finalists({index: timing(1 + index / 1000) for index in range(20)}), [0, 1, 2, 3, 4, 5])
        self.assertEqual(winners.finalists({3: timing(5.0)}), [3])

    def test_nearest(self):
        found = [won("small", place(512)), won("large", place(4096)), won("other", place(1024, device="NVIDIA H200")),
                 won("types", place(1100, types="a:*bf16")), won("old", place(1100, triton="3.3.1")),
                 won("new", place(1100)), won("gfx", place(1100, chip="hip_gfx942"))]
        nearest = lambda wanted: winners.nearest(wanted, found).config  # noqa: E731
        self.assertEqual(nearest(place(1024)), "new")
        self.assertEqual(nearest(place(3000)), "large")
        self.assertEqual(nearest(place(16)), "small")
        self.assertEqual(nearest(place(1100, triton="3.3.1")), "old")
        self.assertEqual(nearest(place(9000, device="NVIDIA H200")), "other")
        self.assertEqual(nearest(place(16, types="a:*bf16")), "types")
        self.assertIsNone(winners.nearest(place(types="a:*fp8"), found))
        self.assertIsNone(winners.nearest(place(key=(("M", 3),)), found))
        self.assertEqual(winners.difference(place(), place(2048, triton="3.3.1")), "key M=2048, N=1024, Triton 3.3.1")

    def test_distance(self):
        self.assertEqual(winners.distance(place(16, 16), place(64, 8)), 3.0)
        self.assertEqual(winners.distance(place(0), place(0)), 0.0)
        self.assertIsNone(winners.distance(place(0), place(1)))
        self.assertIsNone(winners.distance(place("a"), place("b")))
        self.assertIsNone(winners.distance(place(True), place(1)))


class Config:
    pre_hook = None

    def __init__(self, number):
        self.kwargs = {"X": number}

    def all_kwargs(self):
        return dict(self.kwargs)


class Searches(InFolder):
    def search(self, milliseconds, count=10, **options):
        self.order, self.shown = [], []

        def measure(one, incumbent):
            self.order.append(one.index)
            found = milliseconds(one.index)
            if isinstance(found, BaseException):
                raise found
            return timing(found)
        configs = [Config(index) for index in range(count)]
        return search.Search(configs, [f"X={index}" for index in range(count)], None, place(), self.known(), measure,
                             search.Options(**options), lambda *told: self.shown.append(told))

    def test_each_timing_is_recorded_at_once_and_not_measured_again(self):
        def dies(index):
            return KeyboardInterrupt() if index == 6 else 10.0 + abs(index - 4)
        with self.assertRaises(KeyboardInterrupt):
            self.search(dies).run()
        self.assertEqual(sorted(self.known().timings(place())), [f"X={index}" for index in range(6)])
        self.assertEqual(self.search(lambda index: 10.0 + abs(index - 4)).run(), 4)
        self.assertEqual(self.order, [6, 7, 8, 9])

    def test_the_closest_are_measured_in_turns(self):
        self.assertEqual(self.search(lambda index: 10.0 if index in (3, 7) else 20.0).run(), 3)
        self.assertEqual(self.order, [*range(10), 3, 7, 3, 7])

    def test_one_disturbance_chooses_nothing(self):
        seen = []

        def milliseconds(index):
            seen.append(index)
            return {2: 1.0, 5: 1.02 if seen.count(5) > 1 else 0.99}.get(index, 2.0)
        self.assertEqual(self.search(milliseconds).run(), 2)

    def test_what_cannot_run_is_recorded_with_its_reason(self):
        class OutOfResources(Exception):
            pass
        found = self.search(lambda index: OutOfResources("shared memory") if index == 0 else
                            RuntimeError("out of memory") if index == 1 else 1.0 + index)
        self.assertEqual(found.run(), 2)
        self.assertEqual(self.known().failures(place()), {"X=0": "OutOfResources: shared memory"})
        self.search(lambda index: 1.0).run()
        self.assertEqual(self.order, [1])

    def test_a_kernel_that_hangs_ends_the_search_and_is_left_out_of_the_next(self):
        hangs = self.search(lambda index: launch_timer.Hung("a kernel has not ended") if index == 3 else 1.0 + index)
        with self.assertRaisesRegex(launch_timer.Hung, "X=3.*restart the process"):
            hangs.run()
        self.assertEqual(self.search(lambda index: 1.0 + index).run(), 0)
        self.assertNotIn(3, self.order)

    def test_nothing_runs(self):
        with self.assertRaisesRegex(kernelgen.UnsupportedError, "none of 10 configs .* X=0: no idea"):
            self.search(lambda index: ValueError("no idea")).run()

    def test_counts(self):
        self.assertEqual([search.Options(top).count(100) for top in (0.2, 0.01, 7, 1)], [20, 4, 7, 4])
        self.assertEqual(search.Options(0.2).count(3), 3)


class Calls(unittest.TestCase):
    def test_tables(self):
        names, tensor = ["a", "b", "M", "N"], SimpleNamespace(dtype="f16")
        table = dispatch.table_for((tensor, None, 3, 4), {"grid": 1}, names, ["N", "M"])
        self.assertEqual(table.key((tensor, None, 3, 4)), (4, 3, "f16"))
        self.assertIsNone(dispatch.table_for((tensor, None, 3), {"N": 4}, names, ["M"]))
        self.assertEqual(dispatch.table_for((tensor,), {}, names, ["M"]).key((tensor,)), ("f16",))

    def test_calls_ahead(self):
        names = ["a", "b", "M"]
        self.assertTrue(warming.is_list_of_calls(([(1, 2, 3)],), names))
        self.assertFalse(warming.is_list_of_calls((1, 2, 3), names))
        self.assertFalse(warming.is_list_of_calls(([],), names))
        self.assertEqual(list(warming.calls([(1, 2, 3), {"a": 1, "M": 3, "X": 5}], names)),
                         [((1, 2, 3), {}), ((1,), {"M": 3, "X": 5})])
        with self.assertRaisesRegex(kernelgen.ArgumentError, "call 1 of warmup has 4 arguments"):
            list(warming.calls([(1,), (1, 2, 3, 4)], names))


class FakeTensor:
    def __init__(self, begin, size, value=0):
        self.begin, self.size, self.value = begin, size, value

    def untyped_storage(self):
        return SimpleNamespace(data_ptr=lambda: self.begin, nbytes=lambda: self.size)

    def clone(self):
        if self.size > 1000:
            raise MemoryError("no memory")
        return FakeTensor(0, self.size, self.value)

    def copy_(self, other):
        self.value = other.value


class Updates(unittest.TestCase):
    def one(self, reads, writes):
        return SimpleNamespace(work=SimpleNamespace(reads=set(reads), writes=set(writes), updated=set(reads) & set(writes)))

    def test_same_memory_under_two_names(self):
        named = dict(a=FakeTensor(0, 100), b=FakeTensor(50, 100), c=FakeTensor(200, 9), n=3)
        self.assertEqual(updates.updated(self.one("a", "b"), named), {"b"})
        self.assertEqual(updates.updated(self.one("ab", "c"), named), set())
        self.assertEqual(updates.updated(self.one("ac", "c"), named), {"c"})

    def test_they_are_restored_and_it_is_said_once(self):
        named, tuner = dict(a=FakeTensor(0, 8, 5)), SimpleNamespace(reset_to_zero=[], restore_value=[], _told=set())
        for _ in range(2):
            guard = updates.Guard(tuner, named)
            with self.assertLogs("kernelgen") if not tuner._told else mock.MagicMock():
                guard.save(self.one("a", "a"))
            named["a"].value = 7
            guard.save(self.one("a", "a"))  # of the next config: the first copy counts
            guard.restore()
            self.assertEqual(named["a"].value, 5)
        tuner.restore_value = ["a"]
        self.assertEqual((lambda guard: (guard.save(self.one("a", "a")), guard.copies)[1])(updates.Guard(tuner, named)), {})

    def test_what_cannot_be_copied(self):
        named, tuner = dict(a=FakeTensor(0, 5000)), SimpleNamespace(reset_to_zero=[], restore_value=[], _told=set())
        with self.assertRaisesRegex(kernelgen.ArgumentError, r'reset_to_zero=\["a"\]'):
            updates.Guard(tuner, named).save(self.one("a", "a"))


class Ranks(unittest.TestCase):
    def store(self, store):
        module = SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 2,
                                 distributed_c10d=SimpleNamespace(_get_default_store=lambda: store))
        return mock.patch.dict("sys.modules", torch=SimpleNamespace(distributed=module))

    def test_the_first_choice_is_that_of_all(self):
        kept = {}
        store = SimpleNamespace(compare_set=lambda name, expected, value: kept.setdefault(name, value.encode()))
        with self.store(store):
            self.assertEqual([ranks.agree(place(), "list", f"X={rank}") for rank in range(3)], ["X=0"] * 3)
            self.assertEqual(ranks.agree(place(2048), "list", "X=7"), "X=7")

    def test_a_store_that_is_gone_is_said(self):
        def compare_set(*_):
            raise RuntimeError("connection reset")
        with self.store(SimpleNamespace(compare_set=compare_set)), self.assertLogs("kernelgen") as logged:
            self.assertEqual(ranks.agree(place(), "list", "X=1"), "X=1")
        self.assertIn("ranks may use different configs", logged.output[0])

    def test_alone(self):
        with mock.patch.dict("sys.modules", torch=None):
            self.assertEqual(ranks.agree(place(), "list", "X=1"), "X=1")


class Progress(unittest.TestCase):
    def test_line(self):
        now, stream = [0.0], io.StringIO()
        line = progress.Line("matmul [M=3]", stream, lambda: now[0])
        now[0] = 2.0
        line("compiled", 10, 40)
        line("measured", 1, 40)  # too soon after the other
        now[0] = 4.0
        line("compiled", 20, 40)
        self.assertEqual(stream.getvalue().split("\r")[-1], "matmul [M=3]: 20 of 40 configs compiled, 1 measured, 4 s, "
                         "about 4 s left to compile")
        line.clear()
        self.assertEqual(stream.getvalue().split("\r")[-1], "")

    def test_pace(self):
        self.assertEqual(progress.seconds_left(0, 10, 5, 20), 30)
        self.assertIsNone(progress.seconds_left(0, 10, 0, 20))


main()
