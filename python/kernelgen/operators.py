"""Operators: a definition, and the plans made of it for the tensors it was called with."""

from __future__ import annotations

import functools
import math
import types
from ctypes import c_void_p
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Sequence

from . import arrays, errors, extents, library, measuring
from .arrays import Array
from .calls import Calls, Remembered, overlap
from .handles import Plan, Problem, Tensor, tensors_of

try:
    from ._call_path import Calls as CallsInC
except ImportError:  # no CPython with the limited C API
    CallsInC = None  # type: ignore[assignment, misc]

# An op makes plans of their own for so many shapes; further ones run on the plan of the nearest shape.
OWN_PLANS = 8
# Elements of a tensor: plans of fewer may count in 32 bits, and be refused for more.
COUNTED = 2**30


def _never() -> bool:
    return False


# torch.compiler.is_compiling, once there is one.
is_compiling: Callable[[], bool] = _never


class Execution(NamedTuple):
    """What calls with tensors of one layout need."""

    plan: Plan
    sizes: tuple[int, ...] | None  # None: the plan's own
    problem: Problem  # of these tensors
    makers: tuple[tuple, ...]  # of outputs


class Call(NamedTuple):
    """A call's tensors, in the order of the definition."""

    inputs: list[Any]
    outputs: list[Any] | None  # given with out=
    bindings: dict[str, str]
    names: list[str]  # of inputs


def read_definition(source: str | Path) -> tuple[str, str]:
    """The text of a definition, and the name of its file. `source` is a text if it has a brace."""
    if isinstance(source, str) and "{" in source:
        return source, "definition"
    path = Path(source)
    shipped = Path(__file__).parent / "ops" / path.name
    if not path.exists() and shipped.exists():
        path = shipped
    return path.read_text(), str(source)


class Op:
    """An operator. Call it with tensors; `kernelgen.op` makes it."""

    def __init__(self, text: str, file: str, name: str | None, bindings: Mapping[str, str], rigor: str,
                 seconds: float, dynamic: bool | None) -> None:
        if rigor not in library.RIGORS:
            raise errors.ArgumentError(f"rigor '{rigor}' is none of {', '.join(library.RIGORS)}")
        self._text, self._file, self._wanted = text, file, name
        self._bindings, self._rigor, self._seconds, self._dynamic = dict(bindings), rigor, seconds, dynamic
        self._session: library.Session | None = None
        self._executions: dict[tuple, Execution] = {}
        self._shared: dict[tuple, list[tuple[dict[str, int], Plan]]] = {}  # contiguous, by dtypes and device
        self._tuned: dict[tuple, Plan] = {}
        self._seen: set[Any] = set()
        self._torch_op: Any = None
        self._torch_op_out: Any = None
        session = self._attach()
        self.name: str = session.library.kg_op_name(self._handle).decode()
        self.__name__ = self.name
        self._calls = Calls()
        self._in_c: Any = None
        if CallsInC is not None:
            self._in_c = CallsInC(_address(session, "kg_plan_execute"), _address(session, "kg_plan_execute_sized"),
                                  functools.partial(_fail, self.name))
        self._run = self._in_c.run if self._in_c else self._calls.run
        if arrays.loaded("torch"):
            self.register()

    def _attach(self) -> library.Session:
        """The process's session, with the definition parsed in it."""
        session = library.current()
        if session is not self._session:  # the first one, or that of a forked child
            text = self._text.encode()
            with session.working():
                self._handle = session.make("kg_op_parse", session.context, self._file.encode(), text, len(text),
                                            library.encode(self._wanted))
                self.tensors = tensors_of(session, self._handle, "kg_op_tensor", self._count(session))
            self.inputs = tuple(tensor for tensor in self.tensors if not tensor.is_output)
            self.outputs = tuple(tensor for tensor in self.tensors if tensor.is_output)
            self._session = session
        return session

    def __del__(self) -> None:
        session = self.__dict__.get("_session")
        if session:
            session.discard("kg_op_destroy", self._handle)

    def _count(self, session: library.Session) -> int:
        info = library.TensorInfo(size=library.ctypes.sizeof(library.TensorInfo))
        count = 0
        while session.library.kg_op_tensor(self._handle, count, library.ctypes.byref(info)) == 0:
            count += 1
        return count

    @property
    def definition(self) -> str:
        """The text that it was made of."""
        return self._text

    def __repr__(self) -> str:
        def written(tensors: Sequence[Tensor]) -> str:
            return ", ".join(f"{tensor.name}: {tensor.dtype}[{tensor.rank}]" for tensor in tensors)
        return f"<kernelgen op {self.name}({written(self.inputs)}) -> ({written(self.outputs)})>"

    # ---- Calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs for these inputs: one tensor, or a tuple. `out=` are tensors to write to; other keywords
        are params, sizes, or inputs by their names."""
        if is_compiling():
            return self._trace(args, kwargs)
        result = self._run(args, kwargs)
        return self._call(args, kwargs) if result is None else result

    def _trace(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        out = kwargs.pop("out", None)
        if kwargs:
            raise errors.ArgumentError("in a trace only tensors and out= can be passed; use bind() before")
        if out is None:
            return self._torch_op(*args)
        self._torch_op_out(*args, *(out if isinstance(out, tuple) else (out,)))
        return out

    def _call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Any call, also one of a kind that was not seen before."""
        if self._in_c and (result := self._calls.run(args, kwargs)) is not None:
            return result
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType):
            return self._decorate(args[0])
        call = self._arrange(args, kwargs)
        home = arrays.library_of(self.inputs[0].name, call.inputs[0]) if call.inputs else arrays.loaded("numpy")
        if home is None:
            raise errors.ArgumentError(f"op {self.name} has no inputs, and NumPy is not loaded to make its outputs")
        self._see(home)
        if hasattr(home, "is_traced") and any(map(home.is_traced, call.inputs)):
            bound = {key: value for key, value in kwargs.items() if key not in call.names}
            return self._trace(tuple(call.inputs), bound)
        described = self._describe(call, home)
        execution = self._execution(call, described, home)
        outputs = self._execute(execution, call, described, home)
        if described:
            self._remember(args, kwargs, execution, described[0].device)
        if kwargs.get("out") is not None:
            return kwargs["out"]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _decorate(self, function: Callable) -> Op:
        """`@kernelgen.op(text)` above a function: its name, its documentation, and a check of its parameters."""
        named = function.__code__.co_varnames[:function.__code__.co_argcount]
        expected = tuple(tensor.name for tensor in self.inputs)
        if named != expected:
            raise errors.ArgumentError(f"{function.__name__}() has the parameters {', '.join(named) or 'none'}, but op "
                                       f"{self.name} has the inputs {', '.join(expected)}")
        functools.update_wrapper(self, function)
        return self

    def _arrange(self, args: tuple, kwargs: Mapping[str, Any]) -> Call:
        names = [tensor.name for tensor in self.inputs]
        if len(args) > len(names):
            raise errors.ArgumentError(f"op {self.name} has {len(names)} inputs ({', '.join(names)}), and got "
                                       f"{len(args)}")
        given = dict(zip(names, args))
        bindings = dict(self._bindings)
        for key, value in kwargs.items():
            if key in given:
                raise errors.ArgumentError(f"input {key} of op {self.name} is given twice")
            if key in names:
                given[key] = value
            elif key != "out":
                bindings[key] = str(value)
        missing = [name for name in names if name not in given]
        if missing:
            raise errors.ArgumentError(f"op {self.name} needs {', '.join(missing)} too; its inputs are "
                                       f"{', '.join(names)}")
        out = kwargs.get("out")
        outputs = None if out is None else list(out) if isinstance(out, tuple) else [out]
        if outputs is not None and len(outputs) != len(self.outputs):
            raise errors.ArgumentError(f"out= has {len(outputs)} tensors, and op {self.name} {len(self.outputs)} "
                                       f"outputs")
        return Call([given[name] for name in names], outputs, bindings, names)

    def _describe(self, call: Call, home: Any) -> list[Array]:
        """Where all tensors of a call lie: inputs, then given outputs."""
        described: list[Array] = []
        tensors = list(zip(self.inputs, call.inputs)) + list(zip(self.outputs, call.outputs or ()))
        for tensor, array in tensors:
            if arrays.library_of(tensor.name, array) is not home:
                raise arrays.refuse(tensor.name, f"it is a {type(array).__module__} tensor, and others are not")
            found = self._as_declared(tensor, home.describe(tensor.name, array, tensor.is_output))
            if described and found.device != described[0].device:
                raise arrays.refuse(tensor.name, f"it is on {found.device}, and {self.tensors[0].name} on "
                                    f"{described[0].device}")
            described.append(found)
        return described

    def _as_declared(self, tensor: Tensor, found: Array) -> Array:
        """Bits that stand for a dtype which the array's library does not have."""
        if tensor.is_variable or tensor.dtype == found.dtype:
            return found
        if arrays.RAW.get(tensor.dtype) == found.dtype:
            return found._replace(dtype=tensor.dtype)
        if tensor.dtype in library.PACKED and found.dtype == "u8":
            if found.strides != arrays.contiguous_strides(found.shape):
                raise arrays.refuse(tensor.name, "packed elements must be contiguous")
            if tensor.is_packed:
                return self._as_panels(tensor, found)
            return found._replace(dtype=tensor.dtype, shape=(math.prod(found.shape),), strides=(1,))
        return found

    def _as_panels(self, tensor: Tensor, found: Array) -> Array:
        if len(found.shape) != tensor.rank or found.shape[-1] != library.PANEL_BYTES:
            raise errors.ShapeError(f"{tensor.name} is packed: {tensor.rank} dimensions, of which the last is a panel of "
                                    f"{library.PANEL_BYTES} bytes, and not {list(found.shape)}; kernelgen.pack() makes them")
        shape = (*found.shape[:-1], 2 * library.PANEL_BYTES)
        return found._replace(dtype=tensor.dtype, shape=shape, strides=arrays.contiguous_strides(shape))

    # ---- Plans

    def _execution(self, call: Call, described: list[Array], home: Any) -> Execution:
        key = (home, tuple(array[1:] for array in described), tuple(call.bindings.items()))
        execution = self._executions.get(key)
        if execution is None:
            with self._attach().working():
                execution = self._executions.get(key)  # another thread may have been faster
                if execution is None:
                    execution = self._executions[key] = self._make_execution(call, described, home)
        return execution

    def _make_problem(self, call: Call, described: list[Array]) -> Problem:
        session = self._attach()
        if not described:
            return Problem.of(session, self._handle, call.bindings)
        return Problem.of_arrays(session, self._handle, list(zip(self.tensors, described)), call.bindings)

    def _make_execution(self, call: Call, described: list[Array], home: Any) -> Execution:
        problem = self._make_problem(call, described)
        device = described[0].device if described else "host"
        plan, sizes = self._plan_for(problem, call, device)
        makers = tuple(self._maker(home, tensor, device) for tensor in problem.outputs)
        return Execution(plan, sizes, problem, makers)

    def _maker(self, home: Any, tensor: Tensor, device: str) -> tuple:
        if tensor.dtype in library.PACKED:
            return home.maker((tensor.bytes,), "u8", device)
        return home.maker(tensor.shape, tensor.dtype, device)

    def _plan_for(self, problem: Problem, call: Call, device: str) -> tuple[Plan, tuple[int, ...] | None]:
        """A plan of these sizes, or one of other sizes with these."""
        own = self._own_plans(problem)
        sizes = self._sizes(problem) if own != 0 else None
        family = (tuple(tensor.dtype for tensor in problem.tensors), tuple(call.bindings.items()), device)
        shared = self._shared.setdefault(family, [])
        tuned = self._tuned.get(self._key_of(problem, call.bindings, device))
        if sizes is not None and len(shared) >= own > 0 and not tuned:
            _, plan = min(shared, key=lambda other: distance(other[0], sizes))
            return plan, tuple(sizes.values())
        plan = tuned or Plan(problem, device, library.RIGORS.index(self._rigor), self._seconds)
        if sizes is not None:
            shared.append((sizes, plan))
        return plan, None

    def _key_of(self, problem: Problem, bindings: Mapping[str, str], device: str | None) -> tuple:
        return problem.tensors, tuple(bindings.items()), device

    def _own_plans(self, problem: Problem) -> int:
        """How many shapes get plans of their own; 0: all."""
        is_contiguous = all(tensor.strides == arrays.contiguous_strides(tensor.shape) for tensor in problem.tensors)
        is_large = any(math.prod(tensor.shape) > COUNTED for tensor in problem.tensors)
        if self._dynamic is False or not is_contiguous or is_large:
            return 0
        return 1 if self._dynamic else OWN_PLANS

    def _sizes(self, problem: Problem) -> dict[str, int] | None:
        """The op's sizes in the library's order; None: some stand in formulas alone."""
        found = extents.infer(problem.extents(), [tensor.shape for tensor in problem.tensors])
        sizes: dict[str, int] = {}
        read = self._attach().library.kg_op_size_name
        while (name := read(self._handle, len(sizes))) is not None:
            if name.decode() not in found:
                return None
            sizes[name.decode()] = found[name.decode()]
        return sizes

    def _see(self, home: Any) -> None:
        """Prepares calls with tensors of a library that was not seen before."""
        if home in self._seen:
            return
        self._seen.add(home)
        if self._in_c:
            for kind in home.types:
                self._in_c.accept(kind, home.kind)
        if home.kind == arrays.TORCH:
            if self._in_c:
                self._in_c.set_is_grad_on(home.module.is_grad_enabled)
            if self._torch_op is None:
                self.register()

    def _remember(self, args: tuple, kwargs: dict[str, Any], execution: Execution, device: str) -> None:
        """For calls with tensors that lie like these, and nothing else."""
        if len(args) != len(self.inputs) or kwargs.keys() - {"out"}:
            return
        plan, sizes, problem, makers = execution
        lengths = tuple(tensor.bytes for tensor in problem.tensors)
        outputs = tuple((tensor.dtype, tensor.shape) for tensor in problem.outputs)
        if not (self._in_c and self._in_c.remember(args, kwargs, plan, plan.handle, sizes, makers, lengths, outputs)):
            self._calls.remember(args, kwargs, Remembered(plan, sizes, makers, lengths, device))

    def _execute(self, execution: Execution, call: Call, described: list[Array], home: Any) -> list[Any]:
        addresses = [array.address for array in described]
        outputs = call.outputs
        if outputs is None:
            outputs = [function(*args, **kwargs) for function, args, kwargs in execution.makers]
            addresses += [home.describe(tensor.name, output, True).address
                          for tensor, output in zip(self.outputs, outputs)]
        else:
            self._check_apart(execution.problem, addresses)
        device = execution.plan.device or "host"
        execution.plan.execute(addresses, home.stream(device), execution.sizes)
        return outputs

    def _check_apart(self, problem: Problem, addresses: list[int]) -> None:
        found = overlap(addresses, tuple(tensor.bytes for tensor in problem.tensors), len(problem.inputs))
        if found:
            output, other = (problem.tensors[index].name for index in found)
            raise arrays.refuse(output, f"out= overlaps {other}; an output needs memory of its own")

    # ---- Beside calls

    def bind(self, **bindings: Any) -> Op:
        """The same op with params, dtypes or sizes bound: `op.bind(eps=1e-6)`."""
        return Op(self._text, self._file, self.name, {**self._bindings, **{k: str(v) for k, v in bindings.items()}},
                  self._rigor, self._seconds, self._dynamic)

    def register(self, name: str | None = None) -> Any:
        """Registers the op with torch.library, as `name` ("mine::softmax") or one made of the definition.
        Returns PyTorch's operator. Ops made after `import torch` are registered already."""
        global is_compiling
        from . import torch_ops
        torch = arrays.loaded("torch")
        if torch is None:
            raise errors.ArgumentError("import torch first")
        self._torch_op, self._torch_op_out = torch_ops.register(self, torch.module, name)
        is_compiling = torch.module.compiler.is_compiling
        return self._torch_op

    def plan(self, *tensors: Any, device: str | None = None, **bindings: Any) -> Plan:
        """A plan of exactly the sizes of these tensors, also if calls run on another shape's. Without tensors: for
        dtypes and sizes given by name (the rest by the definition's goal) on a device: "host", "cuda:0"; None: the
        best."""
        session = self._attach()
        with session.working():
            problem, written, device = self._problem_of(tensors, bindings, device)
            return self._tuned.get(self._key_of(problem, written, device)) or Plan(
                problem, device, library.RIGORS.index(self._rigor), self._seconds)

    def _problem_of(self, tensors: tuple, bindings: Mapping[str, Any],
                    device: str | None) -> tuple[Problem, dict[str, str], str | None]:
        """Of the arguments of `plan`; with all bindings, and the tensors' device."""
        if tensors or any(tensor.name in bindings for tensor in self.inputs):
            call = self._arrange(tensors, bindings)
            home = arrays.library_of(self.inputs[0].name, call.inputs[0])
            described = self._describe(call, home)
            return self._make_problem(call, described), call.bindings, described[0].device
        written = {**self._bindings, **{name: str(value) for name, value in bindings.items()}}
        return Problem.of(self._attach(), self._handle, written), written, device

    def tune(self, *tensors: Any, rigor: str = "measure", seconds: float = 0, device: str | None = None,
             progress: measuring.Progress = None, **bindings: Any) -> Plan:
        """Searches for the fastest plan, for at most `seconds` (0: no limit) after the first one works. What is found
        is recorded, and used by calls from now on. Arguments are those of `plan`."""
        if rigor not in library.RIGORS:
            raise errors.ArgumentError(f"rigor '{rigor}' is none of {', '.join(library.RIGORS)}")
        session = self._attach()
        with measuring.shown(progress) as show, session.working(show):
            problem, written, device = self._problem_of(tensors, bindings, device)
            plan = Plan(problem, device, library.RIGORS.index(rigor), seconds)
            self._tuned[self._key_of(problem, written, device)] = plan
            self._drop()
        return plan

    def forget(self) -> None:
        """Drops all plans: the next calls make them again, with what is known by then."""
        self._tuned.clear()
        self._drop()

    def _drop(self) -> None:
        self._executions.clear()
        self._shared.clear()
        self._calls.known.clear()
        if self._in_c:
            self._in_c.forget()

    def explain(self, *tensors: Any, json: bool = False, **bindings: Any) -> str:
        """Why this plan: what was tried, pruned and refused. Arguments are those of `plan`."""
        return self._text_of("kg_plan_explain", tensors, bindings, json)

    def source(self, *tensors: Any, **bindings: Any) -> str:
        """The kernels' source, one file that compiles alone: C or CUDA C++. Arguments are those of `plan`."""
        return self._text_of("kg_plan_source", tensors, bindings)

    def _text_of(self, function: str, tensors: tuple, bindings: Mapping[str, Any], *more: Any) -> str:
        plan = self.plan(*tensors, **bindings)
        with plan.session.working():
            return plan.session.text(function, plan.handle, *more)

    def verify(self, *tensors: Any, seed: int = 0, progress: measuring.Progress = None,
               **bindings: Any) -> measuring.Verdict:
        """The accuracy gate, for the kernels of the plan. `seed` repeats inputs. Arguments are those of `plan`."""
        return measuring.verify(self.plan(*tensors, **bindings), seed, progress)

    def bench(self, *tensors: Any, against: Callable | None = None, progress: measuring.Progress = None,
              **bindings: Any) -> measuring.Times:
        """Times the plan alternately with its baseline or, with tensors, with a function of these: `against`.
        Arguments are those of `plan`."""
        if against is None:
            return measuring.bench(self.plan(*tensors, **bindings), progress)
        home = arrays.library_of(self.inputs[0].name, tensors[0])
        device = home.describe(self.inputs[0].name, tensors[0], False).device
        return measuring.compare(functools.partial(self, **bindings), against, tensors, home, device, progress)


def _fail(name: str, status: int) -> None:
    raise library.current().failure(status, f"op {name}: an execution failed")


def _address(session: library.Session, name: str) -> int:
    return library.ctypes.cast(getattr(session.library, name), c_void_p).value or 0


def distance(sizes: Mapping[str, int], others: Mapping[str, int]) -> float:
    """How far shapes are apart: 1 for each size that is e times the other's."""
    return sum(abs(math.log((size + 1) / (others[name] + 1))) for name, size in sizes.items())


def op(source: str | Path, name: str | None = None, *, rigor: str = "estimate", seconds: float = 0,
       dynamic: bool | None = None, **bindings: Any) -> Op:
    """The operator `name` (None: the only one) of a definition.

    `source` is a .kg file, one of those shipped ("softmax.kg"), or a text. `bindings` are params, dtypes and
    sizes. A new shape gets a plan: by rules and what earlier searches found ("estimate"), or after a search
    ("measure", "patient", "exhaustive") of at most `seconds`. `dynamic`: True: one plan runs all shapes; False:
    every shape has its own; None: the first eight have.

    Above a function it is a decorator: the op takes its name and documentation.
    """
    text, file = read_definition(source)
    return Op(text, file, name, {key: str(value) for key, value in bindings.items()}, rigor, seconds, dynamic)


def from_torch(function: Callable, *examples: Any, name: str | None = None, **options: Any) -> Op:
    """The operator that computes what a PyTorch function of these tensors does, and of others with as many
    dimensions: element-wise operations, reductions and matrix products. What cannot be imported is refused by
    name. `options` are those of `op`; `.definition` is the text."""
    from . import fx_import
    return op(fx_import.definition_of(function, examples, name), **options)


def tune(operator: Op, *tensors: Any, **options: Any) -> Plan:
    """`operator.tune(...)`: searches for the fastest plan for these tensors."""
    return operator.tune(*tensors, **options)
