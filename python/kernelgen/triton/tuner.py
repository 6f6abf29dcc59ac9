"""The tuner of one kernel: from a call to a config, by table, by record, by the nearest that is known, or by a search.

It becomes a subclass of Triton's (autotuning.py), which it calls for what both do alike: pruning functions of the
user's, and hooks.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Mapping, Optional, Sequence

from .. import errors
from ..library import home_path, log
from . import (analysis, config_judges, dispatch, identity, known, launch_timer, progress, ranks, records, search,
               source, updates, warming, winners)

MOST_TABLES = 64  # combinations of argument types whose calls are short


class Entry:
    """What a call with a known key does."""

    __slots__ = ("key", "config", "options")

    def __init__(self, key: Any, config: Any) -> None:
        self.key, self.config, self.options = key, config, config.all_kwargs()


class Tuner:
    """What differs from Triton's Autotuner, as far as it needs no Triton."""

    # Of Triton's class
    fn: Any
    configs: list[Any]
    keys: Sequence[str]
    arg_names: list[str]
    cache: dict[Any, Any]
    prune_configs: Callable[..., list[Any]]

    def set_up(self, options: search.Options, *, frozen: Optional[bool], target: Any, device: Optional[str],
               keep: bool, shipped: Any, timer: Callable[[], Any], show: progress.Progress, patience: float) -> None:
        self.options, self.target, self.device, self.show, self.patience = options, target, device, show, patience
        self.frozen = frozen
        self.keep, self.make_timer = keep, timer
        self.misses: dict[Any, int] = {}  # calls of a frozen tuner whose key has no config of its own
        self.last: Optional[search.Search] = None
        self._tables: dict[Any, Optional[dispatch.Table]] = {}
        self._timer: Any = None
        self._known: Optional[known.Known] = None
        self._shipped = known.load(shipped) if shipped is not None else []
        self._told: set[Any] = set()
        self._interpreted = source.is_interpreted(self.fn)
        self.best_config: Any = None

    # ---- Calls

    def run(self, *args: Any, **kwargs: Any) -> Any:
        kinds = (*map(type, args), *kwargs)
        table = self._tables.get(kinds)
        if table is not None:
            raw = table.key(args)
            entry = table.entries.get(raw)
            if entry is not None and self.cache.get(entry.key) is entry.config:
                if self.misses and entry.key in self.misses:
                    self.misses[entry.key] += 1
                return self._launch(entry, args, kwargs)
        entry = self._find(args, kwargs)
        if table is None and kinds not in self._tables and len(self._tables) < MOST_TABLES:
            table = self._tables[kinds] = dispatch.table_for(args, kwargs, self.arg_names, self.keys)
        if table is not None and entry.key is not None:
            table.entries[table.key(args)] = entry
        return self._launch(entry, args, kwargs)

    def _launch(self, entry: Entry, args: Any, kwargs: Any) -> Any:
        config = self.best_config = entry.config
        if config.pre_hook is not None:
            config.pre_hook({**dict(zip(self.arg_names, args)), **kwargs, **entry.options})
        return self.fn.run(*args, **kwargs, **entry.options)

    def _key(self, args: Any, kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """As Triton's own, which users look up in `cache`."""
        named = {name: value for name, value in {**dict(zip(self.arg_names, args)), **kwargs}.items()
                 if name in self.arg_names}
        return (*(named[name] for name in self.keys if name in named),
                *(str(value.dtype) for value in named.values() if hasattr(value, "dtype")))

    def _find(self, args: Any, kwargs: Mapping[str, Any]) -> Entry:
        if len(self.configs) == 1:
            return Entry(None, self.configs[0])
        key = self._key(args, kwargs)
        config = self.cache.get(key)
        if config is not None:
            if key in self.misses:
                self.misses[key] += 1
            return Entry(key, config)
        config, is_kept = self._choose(key, args, kwargs)
        if is_kept:
            self.cache[key] = config
        return Entry(key if is_kept else None, config)

    # ---- Choices

    @property
    def is_frozen(self) -> bool:
        return os.environ.get("KERNELGEN_FROZEN") == "1" if self.frozen is None else self.frozen

    def known_configs(self) -> known.Known:
        if self._known is None:
            function, _ = source.unwrapped(self.fn)
            path = records.path_of(home_path(), function.__name__, str(function.cache_key))
            self._known = known.Known(records.File(path) if self.keep else None)
            self._known.shipped.update((record.place, record) for record in self._shipped)
        self._known.refresh()
        return self._known

    def _choose(self, key: Any, args: Any, kwargs: Mapping[str, Any]) -> tuple[Any, bool]:
        """The config, and whether it stays."""
        named = {**dict(zip(self.arg_names, args)), **kwargs}
        if self._interpreted:  # nothing is compiled: all configs are alike
            return self.configs[0], True
        target = source.make_target(self.target)
        key_names = {name: named[name] for name in self.keys if name in named}
        place = identity.place_of(self.fn, named, key_names, self.configs, target, self.device)
        words = {identity.words_of(config): config for config in reversed(self.configs)}
        asked = identity.asked_of([identity.words_of(config) for config in self.configs], self.options.top,
                                  self.options.judge)
        all_known = self.known_configs()
        found = all_known.winner(place, asked)
        if found and found.config in words:
            return words[ranks.agree(place, asked, found.config)], True
        if self.is_frozen:
            self.misses[key] = self.misses.get(key, 0) + 1
            return self._without_search(place, words, all_known, "frozen"), True
        if _is_capturing():
            return self._without_search(place, words, all_known, "a graph is being captured"), False
        with all_known.turn(place, lambda: self._refreshed_winner(place, asked) is not None, self.patience):
            found = self._refreshed_winner(place, asked)
            if found is None or found.config not in words:
                found = self._search(place, asked, args, kwargs, target, all_known)
        return words[ranks.agree(place, asked, found.config)], True

    def _refreshed_winner(self, place: records.Place, asked: str) -> Optional[records.Record]:
        return self.known_configs().winner(place, asked)

    def _without_search(self, place: records.Place, words: Mapping[str, Any], all_known: known.Known, why: str) -> Any:
        found = all_known.nearest(place, words.__contains__)
        config = words[found.config] if found else self.configs[0]
        if place not in self._told:
            self._told.add(place)
            used = (f"the config of the nearest is used: {winner_words(place, found)}" if found else
                    f"nothing is known of it: the first config is used: {identity.words_of(config)}")
            log.warning("kernelgen.triton: %s is not tuned (%s); %s", place, why, used)
        return config

    # ---- Search

    def _search(self, place: records.Place, asked: str, args: Any, kwargs: Mapping[str, Any], target: Any,
                all_known: known.Known) -> records.Record:
        named = {**dict(zip(self.arg_names, args)), **kwargs}
        self.nargs = dict(zip(self.arg_names, args))  # for the user's pruning functions
        try:
            configs = list(self.prune_configs(dict(kwargs)))
        finally:
            self.nargs = None
        words = [identity.words_of(config) for config in configs]
        try:
            analysed = analysis.Analysis(self.fn, configs, named, target, device=self.device or
                                         analysis.device_name(target))
        except Exception as error:  # whatever it is, all configs are measured
            log.warning("kernelgen.triton: %s: configs are not pruned: %s: %s", place, type(error).__name__, error)
            analysed = None
        if self._timer is None:
            self._timer = self.make_timer()
        guard = updates.Guard(self, named)

        def measure(one: config_judges.Candidate, incumbent: Optional[float]) -> records.Timing:
            return self._measure(one, args, kwargs, guard, incumbent)

        with progress.shown(self.show, str(place)) as show:
            self.last = search.Search(configs, words, analysed, place, all_known, measure, self.options, show)
            index = self.last.run()
        self.pre_hook({**named, **configs[index].all_kwargs()}, reset_only=True)  # type: ignore[attr-defined]
        self.configs_timings = {configs[place_]: [one.ms, one.low, one.high]
                                for place_, one in self.last.medians().items()}
        record = records.Record(place, words[index], "winner", self.last.medians()[index], asked=asked)
        return all_known.settle(record)

    def _measure(self, one: config_judges.Candidate, args: Any, kwargs: Mapping[str, Any], guard: updates.Guard,
                 incumbent: Optional[float]) -> records.Timing:
        config = one.config
        options = config.all_kwargs()
        conflicts = sorted(kwargs.keys() & config.kwargs.keys())
        if conflicts:
            raise errors.ArgumentError(f"{', '.join(conflicts)}: set by the call and by the config {one.words}; leave it "
                                       "out of the call")
        full = {**dict(zip(self.arg_names, args)), **kwargs, **options}
        hooks: Any = self

        def before() -> None:
            if config.pre_hook:
                config.pre_hook(full)
            hooks.pre_hook(full)

        def after(error: Optional[BaseException]) -> None:
            hooks.post_hook(full, exception=error)
            guard.restore()

        guard.save(one)
        launch = launch_timer.Launch(lambda: self.fn.run(*args, **kwargs, **options), before, after)
        try:
            return self._timer(launch, incumbent)
        except errors.Error:
            raise
        except Exception:
            if hasattr(self._timer, "check"):
                self._timer.check()
            raise

    # ---- Ahead of time, and for other machines

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        """warmup(shapes, grid=...): chooses configs ahead for a list of calls, each a tuple or a dict of arguments;
        tensors on the meta device and pairs (shape, dtype) stand for tensors of random values. Returns the configs.

        With anything else: Triton's warmup, which compiles."""
        if warming.is_list_of_calls(args, self.arg_names):
            return [self._find(values, {**kwargs, **named}).config
                    for values, named in warming.calls(args[0], self.arg_names)]
        return super().warmup(*args, **kwargs)  # type: ignore[misc]

    def save(self, folder: str | os.PathLike[str]) -> list[Any]:
        """Writes all winners, a file for each device and version of Triton. Returns the files."""
        return known.save(folder, self.known_configs().all_winners())

    def load(self, path: str | os.PathLike[str]) -> int:
        """Takes winners that `save` wrote, of a file or a folder. Returns how many are of this kernel."""
        name = source.unwrapped(self.fn)[0].__name__
        found = [record for record in known.load(path) if record.place.kernel == name]
        self.known_configs().shipped.update((record.place, record) for record in found)
        return len(found)


def winner_words(wanted: records.Place, found: records.Record) -> str:
    return f"{found.config}, of {winners.difference(wanted, found.place) or 'another list of configs'}"


def _is_capturing() -> bool:
    try:
        import torch
        return bool(torch.cuda.is_available() and torch.cuda.is_current_stream_capturing())
    except Exception:  # no torch, or one without CUDA
        return False
