"""KernelGen's plans on PyTorch tensors, through ctypes: the part of the C interface that the bench
needs. KERNELGEN_LIBRARY is the path of libkernelgen.so if the loader does not find it."""

import ctypes
import os

RIGORS = {"estimate": 0, "measure": 1, "patient": 2, "exhaustive": 3, "wisdom": 4}


class Binding(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("home", ctypes.c_char_p), ("threads", ctypes.c_int), ("cancel", ctypes.c_void_p),
                ("progress", ctypes.c_void_p), ("notice", ctypes.c_void_p),
                ("user", ctypes.c_void_p), ("wisdom", ctypes.c_char_p)]


def load_library():
    library = ctypes.CDLL(os.environ.get("KERNELGEN_LIBRARY", "libkernelgen.so.0"))
    library.kg_context_error.restype = ctypes.c_char_p
    library.kg_plan_choice.restype = ctypes.c_char_p
    return library


class Context:
    """One context and its first GPU. In a home of its own it knows nothing of what others found."""

    def __init__(self, home=None):
        self.library = load_library()
        self.handle = ctypes.c_void_p()
        options = None
        if home:
            options = Options(size=ctypes.sizeof(Options), home=home.encode(), wisdom=b"")
        status = self.library.kg_context_create(ctypes.byref(options) if options else None,
                                                ctypes.byref(self.handle))
        self.check(status)
        self.device = ctypes.c_void_p()
        self.check(self.library.kg_context_device(self.handle, b"cuda:0",
                                                  ctypes.byref(self.device)))

    def check(self, status):
        if status:
            raise RuntimeError(self.library.kg_context_error(self.handle).decode())

    def plan(self, path, name, bindings, rigor="estimate", seconds=0.0):
        return Plan(self, path, name, bindings, rigor, seconds)


class Plan:
    """A definition with dtypes and sizes, ready to run on contiguous tensors."""

    def __init__(self, context, path, name, bindings, rigor, seconds):
        self.context, library = context, context.library
        with open(path, "rb") as file:
            text = file.read()
        op, self.problem, self.handle = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        pairs = (Binding * len(bindings))(*[Binding(k.encode(), str(v).encode())
                                            for k, v in bindings.items()])
        try:
            context.check(library.kg_op_parse(context.handle, path.encode(), text,
                                              ctypes.c_size_t(len(text)), name.encode(),
                                              ctypes.byref(op)))
            context.check(library.kg_problem_create(context.handle, op, pairs, len(bindings),
                                                    ctypes.byref(self.problem)))
            context.check(library.kg_plan_create(self.problem, context.device, RIGORS[rigor],
                                                 ctypes.c_double(seconds),
                                                 ctypes.byref(self.handle)))
        except RuntimeError:
            self.close()
            raise
        finally:
            library.kg_op_destroy(op)
        self.execute = library.kg_plan_execute

    def choice(self):
        return self.context.library.kg_plan_choice(self.handle).decode()

    def close(self):
        self.context.library.kg_plan_destroy(self.handle)
        self.context.library.kg_problem_destroy(self.problem)
        self.handle, self.problem = ctypes.c_void_p(), ctypes.c_void_p()

    def on(self, tensors, stream):
        """A function that runs the plan on these tensors (inputs, then outputs)."""
        pointers = (ctypes.c_void_p * len(tensors))(*[t.data_ptr() for t in tensors])
        handle, execute, where = self.handle, self.execute, ctypes.c_void_p(stream)

        def run():
            status = execute(handle, pointers, where)
            if status:
                self.context.check(status)

        run.arguments = (handle, pointers, where)
        run.tensors = tensors  # alive as long as their addresses are used
        return run
