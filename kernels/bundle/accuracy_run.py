# Of NAME_accuracy.py: the kernel is loaded, called and judged.

# ---- The kernel ----


class Unusable(Exception):
    """The test cannot be made: exit status 2, or 3 where the machine lacks something."""

    def __init__(self, text, status=2):
        super().__init__(text)
        self.status = status


def load_kernel(path):
    try:
        spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except FileNotFoundError:
        raise Unusable(f"there is no {path}") from None
    except ImportError as missing:
        raise Unusable(f"{path} needs {missing.name}, which is not installed", 3) from None
    if not callable(getattr(module, NAME, None)):
        raise Unusable(f"{path} has no function {NAME}")
    return getattr(module, NAME)


def version_of(package):
    """(3, 6) of an installed package; None if nothing is known of it."""
    try:
        found = importlib.metadata.version(package).split(".")
        return tuple(int(part) for part in found[:2])
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None


def interpreter_works():
    """Before Triton 3.7 it cannot read a loop's bounds from what NumPy 2.4 gives it."""
    triton, numpy = version_of("triton"), version_of("numpy")
    return not triton or not numpy or triton >= (3, 7) or numpy < (2, 4)


def choose_device(name):
    if name == "cpu":
        if not interpreter_works():
            raise Unusable("--device cpu: this Triton's interpreter fails with NumPy 2.4; "
                           "install Triton 3.7 or 'numpy<2.4'", 3)
        os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
        return torch.device("cpu")
    if name == "npu":
        try:
            import torch_npu  # noqa: F401
        except ImportError:
            raise Unusable("--device npu needs torch_npu, which is not installed", 3) from None
        return torch.device("npu")
    if not torch.cuda.is_available():
        raise Unusable("--device cuda: there is no GPU here; "
                       "--device cpu takes Triton's interpreter", 3)
    return torch.device("cuda")


def strided(x):
    """The same values, every other element of twice as many."""
    if x.dim() == 0:
        return x
    wide = torch.empty((*x.shape[:-1], 2 * x.shape[-1]), dtype=x.dtype, device=x.device)
    wide[..., ::2] = x
    return wide[..., ::2]


class Test:
    def __init__(self, kernel, device, verbose=False):
        self.kernel, self.device, self.verbose = kernel, device, verbose
        self.impostors = Impostors()
        self.cases, self.elements, self.unknown, self.failures, self.remarks = 0, 0, 0, [], []

    def call(self, inputs, sizes, dtypes):
        named = {name: sizes[name] for name in SIZE_ARGUMENTS} | dtype_arguments(dtypes)
        if not INPUTS:
            named["device"] = self.device
        found = self.kernel(*inputs, **named)
        return list(found) if isinstance(found, (tuple, list)) else [found]

    def run(self, inputs, sizes, dtypes, expected, is_view):
        """What is wrong, or None; and the largest difference."""
        kept = [x.to(self.device) for x in inputs.values()]
        given = [strided(x) if is_view and INPUTS[name] not in PACKED else x.clone()
                 for name, x in zip(inputs, kept)]
        is_cpu = self.device.type == "cpu"
        # PyTorch fills what it allocates: results that were never written show.
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.utils.deterministic.fill_uninitialized_memory = True
        try:
            # The interpreter computes in one order: a second run would be the first again.
            runs = [self.call(given, sizes, dtypes) for _ in range(1 if is_cpu else 2)]
        except ValueError as refused:
            if is_view:
                self.remarks.append(f"strided inputs are refused: {refused}")
                return None, 0.0
            return f"the kernel failed: {type(refused).__name__}: {refused}", math.inf
        except Exception as error:  # noqa: BLE001: whatever a kernel raises is its verdict
            return f"the kernel failed: {type(error).__name__}: {error}", math.inf
        finally:
            torch.use_deterministic_algorithms(False)
        for name, x, y in zip(inputs, kept, given):
            if not same_bits(x, y):
                return f"the kernel changed input {name}", math.inf
        if len(runs[0]) != len(OUTPUTS):
            return f"the kernel gave {len(runs[0])} outputs, not {len(OUTPUTS)}", math.inf
        worst = 0.0
        for name, one, first, second in zip(OUTPUTS, expected, runs[0], runs[-1]):
            if not isinstance(first, torch.Tensor):
                return f"{name} is no tensor", math.inf
            first, second = opened(first, one), opened(second, one)
            if first.shape != one.value.shape or first.dtype != one.rounded.dtype:
                return (f"{name} has shape {tuple(first.shape)} and {first.dtype}, not "
                        f"{tuple(one.value.shape)} and {one.rounded.dtype}"), math.inf
            if not same_bits(first, second):
                return f"two runs differ in {name}", math.inf
            text, largest = one.judge(first.cpu())
            worst = max(worst, largest)
            if text:
                return f"{name}{text}", worst
        return None, worst

    def case(self, sizes, dtypes, kind, seed, is_view=False):
        generator = torch.Generator().manual_seed(seed)
        inputs = draw_inputs(kind, sizes, dtypes, generator)
        expected = expect(inputs, sizes, dtypes, generator)
        if not is_view:
            self.impostors.meet(expected, inputs)
        wrong, largest = self.run(inputs, sizes, dtypes, expected, is_view)
        self.cases += 1
        if kind == "normal":
            self.elements += sum(one.value.numel() for one in expected)
            self.unknown += sum(int(one.unknown.sum()) for one in expected)
        name = f"{kind} values{', strided inputs' if is_view else ''}"
        if self.verbose:
            print(f"    {name}: {'passed' if wrong is None else wrong}; max_diff = {largest:.6g}")
        if wrong is not None:
            self.failures.append(
                {"shape": sizes, "dtypes": dtypes, "inputs": name, "reason": wrong})
        return wrong, largest, name

    def sizes(self, sizes, dtypes, kinds, has_view, seed):
        """A case for each class of values, and one with strided inputs. What is wrong first, or
        None; and the largest difference."""
        wrong, worst = None, 0.0
        for kind in kinds:
            seed += 1
            found, largest, name = self.case(sizes, dtypes, kind, seed)
            worst = max(worst, largest)
            wrong = wrong or (found and f"{name}: {found}")
        if has_view:
            found, _, name = self.case(sizes, dtypes, "normal", seed, is_view=True)
            wrong = wrong or (found and f"{name}: {found}")
        return wrong, worst
