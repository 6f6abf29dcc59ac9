#!/usr/bin/env python3
"""null_arguments.py HEADER LIBRARY: calls every function of kernelgen.h with each of its pointers NULL
in turn. Those that may fail say KG_ERROR_ARGUMENT and name the argument as the header does; the others
survive. A function that the header gains is called without a change here.
"""

import ctypes
import os
import re
import shutil
import sys
import tempfile

ARGUMENT = 1
DEFINITION = b"op twice(x: T[P]) -> (y: T[P]) where T in f32 f16\n{ y[p] = x[p] + x[p] }\ngoal { tune P = 8 }\n"
PTX = (b".version 8.0\n.target sm_90\n.address_size 64\n"
       b".visible .entry k(.param .u64 p)\n{\n    ret;\n}\n")

# Pointers that the header says may be NULL.
OPTIONAL = {
    "kg_context_create": {"options"}, "kg_dtype_numpy": {"is_raw"}, "kg_context_device": {"name"},
    "kg_op_parse": {"name"}, "kg_definitions_compare": {"name"},
    "kg_problem_document": {"device", "language"},
    "kg_plan_contest": {"unrun"}, "kg_plan_execute": {"stream"}, "kg_plan_execute_sized": {"stream"},
    "kg_build": {"options", "plan"}, "kg_assembly_read": {"name"},
    "kg_assembly_add_log": {"matched"}, "kg_assembly_use_fit": {"family"},
    "kg_assembly_predict": {"launch"}, "kg_assembly_report": {"launch"},
    "kg_assembly_compare": {"launch"}, "kg_assembly_sample": {"launch"},
    "kg_fit": {"name", "lines", "filter"}, "kg_samples_export": {"filter"},
    "kg_wisdom_list": {"op"}, "kg_wisdom_forget": {"op"}, "kg_log": {"op"},
    "kg_log_document": {"op", "language"}, "kg_log_folder": {"language"},
    "kg_pack_checkpoint": {"folder"}, "kg_report": {"op", "summary"},
    "kg_report_against": {"op"}, "kg_report_since": {"op", "summary"}, "kg_report_text": {"op"},
    "kg_bundle_consistency": {"definition"},
}
# Handles through which a message can be asked for.
HANDLES = ("context", "op", "problem", "plan", "assembly")


def declarations(header):
    text = re.sub(r"//[^\n]*", "", open(header).read())
    for kind, name, inside in re.findall(r"KG_API\s+([\w\s*]+?)\b(kg_\w+)\(([^)]*)\)\s*;", text):
        parameters = []
        for part in [] if inside.strip() == "void" else inside.split(","):
            whole, last = re.fullmatch(r"\s*(.*?)(\w+)\s*", part, re.S).groups()
            parameters.append((" ".join(whole.split()), last))
        yield " ".join(kind.split()), name, parameters


class Caller:
    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.library.kg_context_error.restype = ctypes.c_char_p
        self.context = self.make("kg_context_create", None)
        self.handles = {"context": self.context}
        self.handles["device"] = self.make("kg_context_device", self.context, b"host")
        self.handles["op"] = self.make("kg_op_parse", self.context, b"twice.kg", DEFINITION,
                                       ctypes.c_size_t(len(DEFINITION)), None)
        self.handles["problem"] = self.make("kg_problem_create", self.context, self.handles["op"],
                                            None, 0)
        self.handles["plan"] = self.make("kg_plan_create", self.handles["problem"],
                                         self.handles["device"], 0, ctypes.c_double(0))
        self.handles["assembly"] = self.make("kg_assembly_read", self.context, b"k.ptx", PTX,
                                             ctypes.c_size_t(len(PTX)))

    def make(self, function, *arguments):
        out = ctypes.c_void_p()
        status = getattr(self.library, function)(*arguments, ctypes.byref(out))
        if status:
            sys.exit(f"{function}: {self.library.kg_context_error(self.context)}")
        return out

    def value(self, kind, name):
        """Some argument of the type; only that it is there matters."""
        handle = re.fullmatch(r"(?:const )?struct kg_(\w+) \*", kind)
        if handle and handle[1] in self.handles:
            return self.handles[handle[1]]
        if kind.endswith("*"):
            # Results, texts, arrays and structs with a size of 0: as they were first published.
            return ctypes.create_string_buffer(8192)
        if kind == "size_t":
            return ctypes.c_size_t(0)
        if kind == "double":
            return ctypes.c_double(0)
        return ctypes.c_uint64(0) if kind == "uint64_t" else 1 if "count" in name else 0


def main():
    os.environ["KERNELGEN_HOME"] = folder = tempfile.mkdtemp(prefix="kg-null-")
    caller = Caller(sys.argv[2])
    failures = calls = 0
    known = {name: {p for _, p in parameters} for _, name, parameters in declarations(sys.argv[1])}
    for name, optional in OPTIONAL.items():
        if not optional <= known.get(name, set()):
            failures += 1
            print(f"{name} has no {optional - known.get(name, set())}")
    for kind, name, parameters in declarations(sys.argv[1]):
        pointers = [p for k, p in parameters if k.endswith("*")]
        if len(pointers) == 0:
            continue
        for absent in pointers:
            if absent in OPTIONAL.get(name, ()):
                continue
            calls += 1
            print(f"{name}({absent} = NULL)", file=sys.stderr, flush=True) # the last one crashed
            if name.endswith(("_destroy", "_release", "_make_printable")):
                getattr(caller.library, name)(None)
                continue
            arguments = [None if p == absent else caller.value(k, p) for k, p in parameters]
            status = getattr(caller.library, name)(*arguments)
            if kind != "enum kg_status":
                continue
            said = caller.library.kg_context_error(caller.context).decode()
            told = absent != "context" and not name.startswith("kg_plan_execute") and any(
                p != absent and re.fullmatch(rf"(const )?struct kg_{p} \*", k)
                for k, p in parameters if p in HANDLES)
            if status != ARGUMENT or (told and f"{name}: {absent} is NULL" not in said):
                failures += 1
                print(f"{name}: with {absent} NULL: status {status}, '{said}'")
    shutil.rmtree(folder, ignore_errors=True)
    print(f"{calls} calls, {failures} failures")
    return 1 if failures or calls < 80 else 0


sys.exit(main())
