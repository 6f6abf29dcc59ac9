"""Planted faults in CUDA kernels: code behind the body of the kernels that `emit` wrote.

How many blocks a generated kernel has is decided by its `// Choice:` line, so a fault cannot be a
kernel of its own. It is planted in every function of the last kernel, where the last block to finish
does it, for all threads of that block. Functions that run earlier spoil what is written again later.
"""

import re

from definition import Name, walk
from planted.host_kernels import HostKernel, read_text
from planted.subject import c_of

KERNEL = re.compile(r'^extern "C" __global__ void (?P<bounds>(?:__\w+__\(.*?\) )*)(?P<name>\w+)\('
                    r'(?P<parameters>[^{}]*?)\)\n\{\n(?P<body>.*?)^\}\n', re.M | re.S)
# Faults without an element condition that make sense on a GPU, by one thread; None: as on the host.
ONE_THREAD = {"changes_input": None, "depends_on_clock": None, "every_third_call": None,
              "hang_in_call": "for (volatile int i = 0;; i++)\n    ;",
              "abort_in_call": 'asm volatile("trap;");',
              "segfault": "*(volatile int *)8 = 1;"}
PRELUDE = """
#define SIEGE_FN static __device__
#ifndef NAN
#define NAN __longlong_as_double(0x7FF8000000000000)
#define INFINITY __longlong_as_double(0x7FF0000000000000)
#endif
"""


class CudaKernel:
    suffix = ".cu"

    @staticmethod
    def why_not(fault):
        if fault.element or fault.name in ONE_THREAD:
            return None
        if fault.group == "memory" and fault.name != "changes_and_restores":
            return None
        return "planted in host kernels only"

    def __init__(self, subject, sizes, folder, device):
        self.subject, self.sizes, self.folder = subject, sizes, folder
        self.emitted = subject.tool.run("emit", *subject.words(sizes), "--target", "cuda",
                                        "--device", device, "--rigor", "estimate")
        kernels = list(KERNEL.finditer(self.emitted))
        group = re.sub(r"_\d+$", "", kernels[-1]["name"])  # functions of the last kernel
        self.kernels = [kernel for kernel in kernels
                        if re.sub(r"_\d+$", "", kernel["name"]) == group]
        self.seen = {word.split()[-1].lstrip("*&") for word in
                     kernels[-1]["parameters"].replace("\n", " ").split(",")}

    def hidden(self, fault):
        """Why the last kernel cannot have the fault: it does not see what is needed; or None."""
        subject = self.subject
        used = [tensor for tensor in subject.op.outputs if tensor.name in self.seen][-1:]
        if not used:
            return "the last kernel sees no output"
        if fault.group == "memory" or "siege_any_line" in fault.element:
            used = used + subject.op.inputs
        unseen = [tensor.name for tensor in used if tensor.name not in self.seen]
        if unseen:
            return f"the last kernel does not see {', '.join(unseen)}"
        sizes = {node.name for tensor in used for dim in tensor.dims for node in walk(dim)
                 if isinstance(node, Name)} - set(subject.op.params)
        if "size" in fault.element:
            sizes |= set(subject.size_names)
        missing = sizes - self.seen
        return f"the last kernel is not told {', '.join(sorted(missing))}" if missing else None

    def describe(self):
        """siege_describe for the tensors that the last kernel sees; the others are empty."""
        lines = ["SIEGE_FN void siege_describe(struct siege_tensor *t, const int64_t *size)", "{"]
        lines += [f"    const int64_t s_{name} = size[{at}];"
                  for at, name in enumerate(self.subject.size_names)]
        lines += [f"    const int64_t s_{name} = {value};"
                  for name, value in self.subject.op.params.items() if isinstance(value, int)]
        for at, tensor in enumerate(self.subject.tensors):
            if tensor.name not in self.seen:
                continue
            lines += [f"    t[{at}].kind = SIEGE_{self.subject.dtypes[tensor.name]};",
                      f"    t[{at}].rank = {len(tensor.dims)};"]
            lines += [f"    t[{at}].shape[{d}] = {c_of(dim)};"
                      for d, dim in enumerate(tensor.dims)]
            lines.append(f"    siege_measure(&t[{at}]);")
        return "\n".join(lines + ["}"])

    def support(self, fault):
        problem = [str(self.sizes[name]) for name in self.subject.size_names] + ["0"]
        last = max(at for at, tensor in enumerate(self.subject.tensors)
                   if tensor.name in self.seen)
        code = ONE_THREAD.get(fault.name) or fault.before + fault.after
        lines = [f"// A planted fault, {fault.name}: {fault.plants}", PRELUDE,
                 f"enum {{ INPUTS = {len(self.subject.op.inputs)}, "
                 f"TENSORS = {len(self.subject.tensors)}, SIZES = {len(problem) - 1} }};",
                 read_text("planted_elements.h"),
                 f"static __device__ const int64_t problem[] = {{{', '.join(problem)}}};",
                 self.describe(), HostKernel.tolerance(), read_text("questions.h"),
                 read_text("blocks.cuh"), re.sub(r"^static ", "static __device__ ", fault.outside),
                 "SIEGE_FN void siege_plant(struct siege_tensor *t, const int64_t *size, "
                 "int64_t thread, int64_t threads)", "{"]
        if fault.element:
            lines += ["    for (int i = INPUTS; i < TENSORS; i++) {",
                      "        const struct siege_tensor *o = &t[i];",
                      "        const int64_t e = o->elements, rows = o->rows;",
                      "        const int64_t columns = o->columns > 0 ? o->columns : 1;",
                      f"        if (!{int(fault.everywhere)} && i != {last})",
                      "            continue;",
                      "        for (int64_t n = thread; n < e; n += threads) {",
                      "            const int64_t row = n / columns, column = n % columns;",
                      "            (void)rows, (void)row, (void)column;",
                      f"            if ({fault.element}) {{", f"                {fault.change}",
                      "            }", "        }", "    }"]
        elif code:
            code = code.replace("TENSORS - 1", str(last))  # the last output that is seen here
            lines += ["    if (thread == 0) {", code, "    }"]
        return "\n".join(lines + ["}"]) + "\n"

    def planted(self, kernel):
        """The function with the fault behind its body."""
        subject, done = self.subject, f"siege_done_{kernel['name']}"
        sizes = [f"(int64_t){name}" if name in self.seen else "0" for name in subject.size_names]
        body = kernel["body"]
        wrapped = f"[&]() {{\n{body}    }}();" if "return" in body else f"{{\n{body}    }}"
        lines = [f"static __device__ unsigned {done};",
                 f'extern "C" __global__ void {kernel["bounds"]}{kernel["name"]}('
                 f'{kernel["parameters"]})', "{", f"    {wrapped}",
                 f"    if (siege_is_last_block(&{done})) {{",
                 "        struct siege_tensor t[TENSORS] = {};",
                 f"        const int64_t size[] = {{{', '.join(sizes + ['0'])}}};",
                 "        siege_describe(t, size);"]
        lines += [f"        t[{at}].data = (char *){tensor.name};"
                  for at, tensor in enumerate(subject.tensors) if tensor.name in self.seen]
        return "\n".join(lines + ["        siege_plant(t, size, siege_thread(), siege_threads());",
                                  "    }", "}"]) + "\n"

    def source(self, fault, _notes=""):
        """The file with a fault planted; without a fault, the emitted file."""
        if fault is None:
            return self.emitted
        first, parts, at = self.kernels[0].start(), [], 0
        for kernel in self.kernels:
            parts.append(self.emitted[at:kernel.start()])
            parts += [self.support(fault)] if kernel.start() == first else []
            parts.append(self.planted(kernel))
            at = kernel.end()
        return "".join(parts) + self.emitted[at:]
