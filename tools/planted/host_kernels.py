"""Planted faults in host kernels: C files whose entry wraps the one that `emit` wrote.

The right kernel is compiled once, to assembly; every faulty file includes that assembly, so that
judging a fault does not wait for the optimiser. `source` gives a file, `source(None)` the emitted
one as it is.
"""

import hashlib
import os
import re
import subprocess

from planted.subject import c_of

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = ["-O3", "-std=gnu17", "-fPIC", "-fno-math-errno", "-fno-trapping-math",
         "-ffp-contract=fast", "-fopenmp-simd", "-march=native", "-fno-asynchronous-unwind-tables"]
HEADERS = ["fcntl.h", "fenv.h", "math.h", "pthread.h", "signal.h", "stdbool.h", "stdint.h", "stdio.h",
           "stdlib.h", "string.h", "sys/types.h", "time.h", "unistd.h"]
# The default tolerances of docs/verification.md.
TOLERANCES = {"f16": 1e-3, "bf16": 1.6e-2, "f32": 1.3e-6, "f64": 1e-7, "f8e4m3": 7.8e-3,
              "f8e5m2": 7.8e-3}
STORAGE = {"f32": "float", "f64": "double", "bool": "bool"}


def storage(dtype):
    """The element's type in the signature of a host kernel."""
    if dtype in STORAGE:
        return STORAGE[dtype]
    if dtype[0] in "iu" and dtype[1:] != "4":
        return f"{'u' if dtype[0] == 'u' else ''}int{dtype[1:]}_t"
    return "uint16_t" if dtype.endswith("f16") else "uint8_t"


def read_text(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def parameters(subject, dtypes):
    inputs = {tensor.name for tensor in subject.op.inputs}
    words = [f"{'const ' if tensor.name in inputs else ''}{storage(dtypes[tensor.name])} *a{at}"
             for at, tensor in enumerate(subject.tensors)]
    return ", ".join(words + [f"int64_t n{at}" for at in range(len(subject.size_names))])


def call(subject, function, dtypes):
    """A call of an entry with the tensors in t and the sizes in size."""
    words = [f"({storage(dtypes[tensor.name])} *)t[{at}].data"
             for at, tensor in enumerate(subject.tensors)]
    words += [f"size[{at}]" for at in range(len(subject.size_names))]
    return f"{function}({', '.join(words)})"


class HostKernel:
    suffix = ".c"
    @staticmethod
    def why_not(fault):
        """Host kernels can have every fault of the catalogue."""
        return None

    def __init__(self, subject, sizes, folder, _device):
        self.subject, self.sizes, self.folder = subject, sizes, folder
        self.emitted = self.emit(subject.bindings)
        self.name = re.search(r"^// Call:\s+int (\w+)\(", self.emitted, re.M).group(1)
        self.right = self.assembly(self.emitted, "siege_right")
        self.wide = None

    def hidden(self, _fault):
        """A host kernel's entry sees everything."""
        return None

    def emit(self, bindings):
        words = [self.subject.path, "--op", self.subject.op.name, "--target", "host",
                 "--device", "host", "--rigor", "estimate"]
        for name, dtype in bindings.items():
            words += ["--dtype", f"{name}={dtype}"]
        for name, value in self.sizes.items():
            words += ["--size", f"{name}={value}"]
        return self.subject.tool.run("emit", *words)

    def assembly(self, text, entry):
        """The path of the kernel's assembly, in which no symbol is global but by the entry's name."""
        text, found = re.subn(rf"^int {self.name}\(", f"int {entry}(", text, flags=re.M)
        if found != 1:
            raise ValueError(f"{self.subject}: no entry in the emitted file")
        text = re.sub(r"\bkg_", f"{entry}_kg_", text)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        path = os.path.join(self.folder, f"{entry}_{digest}.s")
        if not os.path.exists(path):
            done = subprocess.run([os.environ.get("CC", "cc"), *FLAGS, "-x", "c", "-S", "-", "-o",
                                   "-"], input=text, text=True, capture_output=True, check=False)
            if done.returncode != 0:
                raise ValueError(f"{self.subject}: {done.stderr.splitlines()[0]}")
            code = re.sub(r"^\s*\.globl.*\n", "", done.stdout, flags=re.M)
            code = re.sub(r"\.L(?=[A-Za-z0-9])", f".L{entry}_", code)
            with open(path, "w", encoding="utf-8") as file:
                file.write(code)
        return path

    def wide_path(self):
        if not self.wide:
            bindings = self.subject.wide_dtypes()
            self.wide = self.assembly(self.emit(bindings), "siege_wide")
        return self.wide

    # ---- The wrapper ----

    def heading(self, notes):
        """Constants, headers and the right kernel."""
        subject = self.subject
        problem = [str(self.sizes[name]) for name in subject.size_names]
        lines = [f"enum {{ INPUTS = {len(subject.op.inputs)}, TENSORS = {len(subject.tensors)}, "
                 f"SIZES = {len(problem)}, IDS = {len(subject.ids())} }};",
                 f'#define SIEGE_NOTES "{notes}"']
        lines += [f"#include <{header}>" for header in HEADERS]
        lines += [read_text("planted_elements.h"), read_text("host.h"),
                  f"static const int64_t problem[] = {{{', '.join(problem + ['0'])}}};",
                  "static const struct { int tensor, from, dim; } siege_ids[] = {"
                  + ", ".join([f"{{{a}, {b}, {c}}}" for a, b, c in subject.ids()] + ["{0, 0, 0}"])
                  + "};", self.described(), self.tolerance(), read_text("questions.h"),
                  f'__asm__(".include \\"{self.right}\\"\\n.text");',
                  f"extern int siege_right({parameters(subject, subject.dtypes)});"]
        return lines

    def described(self):
        """siege_describe: kinds and shapes of the tensors for sizes."""
        subject = self.subject
        lines = ["static void siege_describe(struct siege_tensor *t, const int64_t *size)", "{",
                 "    (void)size;"]
        lines += [f"    const int64_t s_{name} __attribute__((unused)) = size[{at}];"
                  for at, name in enumerate(subject.size_names)]
        lines += [f"    const int64_t s_{name} __attribute__((unused)) = {value};"
                  for name, value in subject.op.params.items() if isinstance(value, int)]
        for at, tensor in enumerate(subject.tensors):
            lines.append(f"    t[{at}].kind = SIEGE_{subject.dtypes[tensor.name]};")
            lines.append(f"    t[{at}].rank = {len(tensor.dims)};")
            lines += [f"    t[{at}].shape[{d}] = {c_of(dim)};"
                      for d, dim in enumerate(tensor.dims)]
            lines.append(f"    siege_measure(&t[{at}]);")
        return "\n".join(lines + ["}"])

    @staticmethod
    def tolerance():
        choices = "".join(f"kind == SIEGE_{dtype} ? {value} : " for dtype, value
                          in TOLERANCES.items())
        return ("SIEGE_FN double siege_tolerance(int kind)\n{\n"
                f"    return {choices}0;\n}}")

    def widening(self):
        """siege_wide_results: the op computed from the same inputs in f32."""
        subject = self.subject
        bindings = subject.wide_dtypes()
        dtypes = {tensor.name: bindings.get(tensor.dtype, tensor.dtype)
                  for tensor in subject.tensors}
        kinds = ", ".join(f"SIEGE_{dtypes[tensor.name]}" for tensor in subject.tensors)
        return [f'__asm__(".include \\"{self.wide_path()}\\"\\n.text");',
                f"extern int siege_wide({parameters(subject, dtypes)});",
                f"static const int siege_wide_kinds[] = {{{kinds}}};",
                "static int siege_call_wide(const struct siege_tensor *t, const int64_t *size)",
                "{", "    (void)size;", f"    return {call(subject, 'siege_wide', dtypes)};", "}",
                read_text("wide.h")]

    def low_sum(self):
        """siege_low_sum: the op's sum, accumulated in f16 where that takes no minutes."""
        left, total = self.subject.plain_sum()
        places = {tensor.name: at for at, tensor in enumerate(self.subject.tensors)}
        extents = {}
        factors = []

        def gather(node):
            if hasattr(node, "subscripts"):
                at = places[node.tensor]
                flat = "0"
                for dim, subscript in enumerate(node.subscripts):
                    extents.setdefault(subscript.name, f"t[{at}].shape[{dim}]")
                    flat = f"({flat} * t[{at}].shape[{dim}] + i_{subscript.name})"
                factors.append(f"siege_number(&t[{at}], {flat})")
            else:
                for argument in getattr(node, "arguments", ()):
                    gather(argument)
                if hasattr(node, "name"):
                    factors.append(f"i_{node.name}" if node.name in extents else "0")
        gather(total.body)
        out = len(self.subject.tensors) - 1
        names = [index.name for index in left]
        reduced = [index.name for index in total.indices]
        flat = "0"
        for dim, name in enumerate(names):
            extents[name] = f"t[{out}].shape[{dim}]"
            flat = f"({flat} * t[{out}].shape[{dim}] + i_{name})"
        loops = [f"for (int64_t i_{name} = 0; i_{name} < {extents[name]}; i_{name}++)"
                 for name in names]
        inner = [f"for (int64_t i_{name} = 0; i_{name} < {extents[name]}; i_{name}++)"
                 for name in reduced]
        terms = " * ".join([f"(double)t[{out}].elements"] + [extents[name] for name in reduced])
        return ["static void siege_low_sum(const struct siege_tensor *t, const int64_t *size)",
                "{", "    (void)size;", f"    if ({terms} > 5e6)", "        return;", *loops, "{",
                "    double sum = 0;", *inner,
                f"    sum = siege_decode(SIEGE_f16, siege_encode(SIEGE_f16, sum + "
                f"{' * '.join(factors)}, SIEGE_TO_EVEN));",
                f"    siege_set_real(&t[{out}], {flat}, sum, SIEGE_TO_EVEN);", "}", "}"]

    def source(self, fault, notes=""):
        """The file with a fault planted; without a fault, the emitted file."""
        if fault is None:
            return self.emitted
        subject = self.subject
        lines = [f"// {self.name} with a planted fault, {fault.name}: {fault.plants}",
                 *self.heading(notes)]
        if fault.wide:
            lines += self.widening()
        if "siege_low_sum" in fault.after:
            lines += self.low_sum()
        lines += ["static int siege_run(struct siege_tensor *t, const int64_t *size)",
                  "{", "    (void)size;",
                  f"    return {call(subject, 'siege_right', subject.dtypes)};", "}",
                  fault.outside,
                  "// What is planted.",
                  "static int siege_entry(struct siege_tensor *t, const int64_t *size)",
                  "{", "    int failed = 0;", "#define right() siege_run(t, size)",
                  fault.before.strip("\n")]
        lines += ["    failed = right();"] if fault.calls else []
        if fault.element:
            lines += ["    for (int i = INPUTS; i < TENSORS; i++)",
                      f"        if ({int(fault.everywhere)} || i == TENSORS - 1)",
                      "            siege_change(t, &t[i], size);"]
            at = len(lines) - lines[::-1].index("// What is planted.") - 1
            lines[at:at] = self.change(fault)
        lines += [fault.after.strip("\n"), "    return failed;", "}",
                  f"int {self.name}({parameters(subject, subject.dtypes)})", "{",
                  "    struct siege_tensor t[TENSORS] = {{0}};",
                  "    const int64_t size[] = {"
                  + ", ".join([f"n{at}" for at in range(len(subject.size_names))] + ["0"]) + "};",
                  "    siege_describe(t, size);"]
        lines += [f"    t[{at}].data = (char *)(uintptr_t)a{at};"
                  for at in range(len(subject.tensors))]
        lines += ["    int failed = siege_entry(t, size);", "    for (int i = 0; i < TENSORS; i++)",
                  "        free(t[i].owned);", "    return failed;", "}"]
        return "\n".join(lines) + "\n"

    @staticmethod
    def change(fault):
        """siege_change: spoils the elements of one output for which the condition holds."""
        return ["static void siege_change(const struct siege_tensor *t, "
                "const struct siege_tensor *o, const int64_t *size)", "{",
                "    const int64_t e = o->elements, rows = o->rows, columns = o->columns;",
                "    (void)t, (void)size, (void)rows;",
                "    for (int64_t n = 0; n < e; n++) {",
                "        const int64_t row = n / columns, column = n % columns;",
                "        (void)row, (void)column;",
                f"        if ({fault.element}) {{", f"            {fault.change}",
                "        }", "    }", "}"]
