# Of NAME_accuracy.py: the cases, the report, the command line.

# ---- Cases ----


def is_interpreted(device, dtypes):
    """Triton's interpreter converts subnormal bf16 to f32 wrongly."""
    return device.type == "cpu" and "bf16" in [dtypes.get(name, name) for name in
                                               (*INPUTS.values(), *OUTPUTS.values())]


def said(sizes):
    return ", ".join(f"{name}={value}" for name, value in sizes.items())


def bound_dtypes(words):
    """A dict for each combination that is tested: the first dtype of every variable, and each other
    one in its turn; those named on the command line alone."""
    chosen = {}
    for word in words or []:
        for item in word.split(","):
            name, _, value = item.rpartition("=")
            for variable in VARIABLES if not name else [name]:
                if variable not in VARIABLES:
                    raise Unusable(f"--dtype {item}: there is no {variable}; there is "
                                   f"{', '.join(VARIABLES) or 'none'}")
                if value in VARIABLES[variable]:
                    chosen[variable] = value
                elif name or len(VARIABLES) == 1:
                    raise Unusable(f"--dtype {item}: {variable} is one of "
                                   f"{', '.join(VARIABLES[variable])}")
    first = {name: chosen.get(name, dtypes[0]) for name, dtypes in VARIABLES.items()}
    found = [first]
    for name, dtypes in VARIABLES.items():
        if name not in chosen:
            found += [{**first, name: dtype} for dtype in dtypes[1:]]
    return found


def sizes_from(word):
    sizes = {}
    for item in word.split(","):
        name, _, value = item.partition("=")
        if name not in SIZES or not value.isdigit():
            raise Unusable(f"--shape {word}: it is {','.join(f'{size}=NUMBER' for size in SIZES)}")
        sizes[name] = int(value)
    if len(sizes) != len(SIZES):
        missing = ", ".join(s for s in SIZES if s not in sizes)
        raise Unusable(f"--shape {word}: {missing} is missing")
    return sizes


def elements_of(sizes):
    return sum(math.prod(shape) for shape in shapes(**sizes).values())


def kinds_for(judge, dtypes):
    """The classes of values that the device can be judged by."""
    if not is_interpreted(judge.device, dtypes):
        return KINDS
    judge.remarks.append("no subnormal values: the interpreter reads those of bf16 wrongly")
    return [kind for kind in KINDS if kind != "denormal"]


def chosen_cases(options, judge):
    """Dtypes, sizes, classes of values, and whether strided inputs are tested, too."""
    is_cpu = judge.device.type == "cpu"
    rows = [sizes_from(word) for word in options.shape] if options.shape else ROWS
    most = 2**62 if options.shape else 2**18 if is_cpu else 2**24
    # The interpreter takes each step of a reduction in Python: large shapes get ordinary values.
    thorough = 2**12 if is_cpu and not options.shape else most
    for dtypes in bound_dtypes(options.dtype):
        kinds = kinds_for(judge, dtypes)
        number = -1  # among those that are thorough
        for sizes in rows:
            elements = elements_of(sizes)
            number += elements <= thorough
            if elements > most:
                judge.remarks.append(f"left out: {said(sizes)} (too large for this device)")
            elif options.shape:
                yield dtypes, sizes, kinds, True
            elif elements > thorough:
                yield dtypes, sizes, kinds[:1], False
            else:  # ordinary values at all sizes, each other class at a few
                count = len(kinds) if number % 3 == 0 else 1 + number % 3
                yield dtypes, sizes, kinds[:count], number % 4 == 1


def conclude(judge, is_chosen):
    """What the cases together show. The impostors that were accepted; `is_chosen`: by sizes of the
    user's, which need not reject all."""
    accepted, alike = judge.impostors.accepted()
    if alike:
        judge.remarks.append(f"whatever the inputs are, the result is the same: {', '.join(alike)}")
    if judge.elements and judge.unknown > 0.9 * judge.elements:
        judge.failures.append(
            {"reason": "nine in ten results cannot be decided: rounding moves them"})
    if accepted and not is_chosen:
        judge.failures.append({"reason": "these inputs do not reject an impostor: "
                                         + ", ".join(accepted)})
    return accepted


def test(options, say=print):
    """Runs every case. The report, as a dict."""
    device = choose_device(options.device)
    path = options.kernel or pathlib.Path(__file__).with_name(f"{NAME}_triton.py")
    judge = Test(load_kernel(path), device, options.verbose)
    cases = list(chosen_cases(options, judge))
    say(f"Testing {NAME} accuracy...")
    seed, worst = options.seed, 0.0
    for dtypes, sizes, kinds, has_view in cases:
        say(f"Shape: {said(sizes) or 'no sizes'}"
            + "".join(f", {name} = {dtype}" for name, dtype in dtypes.items()))
        wrong, largest = judge.sizes(sizes, dtypes, kinds, has_view, seed)
        seed += len(kinds)
        worst = max(worst, largest)
        say(f"✓ Test passed: max_diff = {largest:.6g}" if wrong is None
            else f"✗ Test failed: {wrong}; max_diff = {largest:.6g}")
    accepted = conclude(judge, bool(options.shape))
    return {"op": NAME, "kernel": str(path), "device": options.device, "seed": options.seed,
            "passed": not judge.failures, "cases": judge.cases, "elements": judge.elements,
            "max_diff": worst, "impostors_rejected": len(judge.impostors.rejected),
            "impostors_accepted": accepted, "remarks": list(dict.fromkeys(judge.remarks)),
            "failures": judge.failures}


# ---- Command line ----


def parse(words=None):
    parser = argparse.ArgumentParser(description=f"Judges {NAME} against its definition.", epilog=(
        "Exit status: 0 it passed, 1 it did not, 2 bad usage, 3 the machine lacks something."))
    parser.add_argument("--device", choices=("cuda", "npu", "cpu"), default="cuda",
                        help="cpu: Triton's interpreter")
    parser.add_argument("--kernel", metavar="FILE", help="another module with the function")
    parser.add_argument("--shape", action="append", metavar="P=4096,D=1000",
                        help="these sizes instead; may be repeated")
    parser.add_argument("--dtype", action="append", metavar="T=f16", help="these dtypes alone")
    parser.add_argument("--seed", type=int, default=None,
                        help="of the inputs; default: a fresh one")
    parser.add_argument("--json", action="store_true", help="prints one JSON object")
    parser.add_argument("--verbose", action="store_true", help="a line for each class of inputs")
    options = parser.parse_args(words)
    if options.seed is None:
        options.seed = int.from_bytes(os.urandom(3), "little")
    return options


def main(words=None):
    options = parse(words)
    try:
        if options.json:
            options.verbose = False
            report = test(options, say=lambda text: None)
            print(json.dumps(report))
        else:
            report = test(options)
    except Unusable as reason:
        print(f"{NAME}: {reason}", file=sys.stderr)
        return reason.status
    if not options.json:
        for remark in report["remarks"]:
            print(f"Note: {remark}")
        for failure in report["failures"]:
            if "shape" not in failure:
                print(f"✗ {failure['reason']}")
        print(f"{report['impostors_rejected']} impostors rejected by the same inputs; "
              f"seed {options.seed}")
        print("All accuracy tests passed!" if report["passed"]
              else f"{len(report['failures'])} of {report['cases']} cases failed.")
    return 0 if report["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
