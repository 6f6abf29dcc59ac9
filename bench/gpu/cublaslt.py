"""cuBLASLt through ctypes: as much of it as a product of row-major matrices needs.

The library is column-major, so that y = x * w is asked for as y^T = w^T * x^T: its A is our w, its
B our x, and its rows are our columns. Numbers of enums are those of cublasLt.h, CUDA 13.0.
"""

import ctypes

import torch

DTYPES = {torch.float32: 0, torch.float16: 2, torch.bfloat16: 14}
COMPUTE_F32, SCALE_F32, TRANSPOSED = 68, 0, 1
DESC_TRANSA, DESC_EPILOGUE, DESC_BIAS_POINTER, DESC_BIAS_TYPE = 3, 7, 8, 26
EPILOGUE_GELU_BIAS = 36  # GELU by tanh
LAYOUT_BATCH, LAYOUT_BATCH_STRIDE = 5, 6
PREFERENCE_WORKSPACE = 1
WORKSPACE = 64 << 20
ANSWERS = 8
NAMES = "libcublasLt.so.13", "libcublasLt.so", "libcublasLt.so.12"


class Algorithm(ctypes.Structure):
    _fields_ = [("data", ctypes.c_uint64 * 8)]


class Answer(ctypes.Structure):
    """What the heuristic says of one algorithm."""
    _fields_ = [("algorithm", Algorithm), ("workspace", ctypes.c_size_t), ("state", ctypes.c_int),
                ("waves", ctypes.c_float), ("reserved", ctypes.c_int * 4)]


def load_library():
    """The one that PyTorch has loaded, where it has."""
    reasons = []
    for name in NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError as problem:
            reasons.append(str(problem))
    raise RuntimeError(reasons[0])


def check(status, what):
    if status:
        raise RuntimeError(f"{what}: cuBLAS status {status}")


def set_attribute(function, handle, attribute, value):
    check(function(handle, ctypes.c_int(attribute), ctypes.byref(value),
                   ctypes.c_size_t(ctypes.sizeof(value))), f"attribute {attribute}")


class Lt:
    """The library, a handle and a workspace."""

    def __init__(self):
        self.library = load_library()
        self.library.cublasLtGetVersion.restype = ctypes.c_size_t
        self.version = self.library.cublasLtGetVersion()
        self.library.cublasLtMatmul.argtypes = [ctypes.c_void_p] * 14 + [ctypes.c_size_t,
                                                                        ctypes.c_void_p]
        self.handle = ctypes.c_void_p()
        check(self.library.cublasLtCreate(ctypes.byref(self.handle)), "cublasLtCreate")
        self.workspace = torch.empty(WORKSPACE, dtype=torch.uint8, device="cuda")

    def product(self, x, w, y, linear, bias=None):
        return Product(self, x, w, y, linear, bias)


class Product:
    """y = x * w, or gelu(x * w + bias), of one shape, with the algorithms that Lt would take."""

    def __init__(self, lt, x, w, y, linear, bias):
        self.lt, self.tensors = lt, (x, w, y, bias)
        batch, m, k = x.shape if x.dim() == 3 else (1, *x.shape)
        n = y.shape[-1]
        self.batch = batch
        self.w = self._layout(w, (k, n, k) if linear else (n, k, n))
        self.x = self._layout(x, (k, m, k))
        self.y = self._layout(y, (n, m, n))
        self.operation = self._operation(linear, bias)

    def _layout(self, tensor, sizes):
        """Of column-major rows, columns and pitch."""
        library, layout = self.lt.library, ctypes.c_void_p()
        rows, columns, pitch = sizes
        check(library.cublasLtMatrixLayoutCreate(
            ctypes.byref(layout), ctypes.c_int(DTYPES[tensor.dtype]), ctypes.c_uint64(rows),
            ctypes.c_uint64(columns), ctypes.c_int64(pitch)), "layout")
        if self.batch > 1:
            change = library.cublasLtMatrixLayoutSetAttribute
            set_attribute(change, layout, LAYOUT_BATCH, ctypes.c_int32(self.batch))
            set_attribute(change, layout, LAYOUT_BATCH_STRIDE, ctypes.c_int64(rows * columns))
        return layout

    def _operation(self, linear, bias):
        library, operation = self.lt.library, ctypes.c_void_p()
        check(library.cublasLtMatmulDescCreate(ctypes.byref(operation), ctypes.c_int(COMPUTE_F32),
                                               ctypes.c_int(SCALE_F32)), "descriptor")
        change = library.cublasLtMatmulDescSetAttribute
        if linear:
            set_attribute(change, operation, DESC_TRANSA, ctypes.c_int32(TRANSPOSED))
        if bias is not None:
            set_attribute(change, operation, DESC_EPILOGUE, ctypes.c_int32(EPILOGUE_GELU_BIAS))
            set_attribute(change, operation, DESC_BIAS_POINTER, ctypes.c_void_p(bias.data_ptr()))
            set_attribute(change, operation, DESC_BIAS_TYPE, ctypes.c_int32(DTYPES[bias.dtype]))
        return operation

    def answers(self):
        """What the heuristic proposes, the best first by its own judgement."""
        library, preference = self.lt.library, ctypes.c_void_p()
        check(library.cublasLtMatmulPreferenceCreate(ctypes.byref(preference)), "preference")
        set_attribute(library.cublasLtMatmulPreferenceSetAttribute, preference,
                      PREFERENCE_WORKSPACE, ctypes.c_uint64(WORKSPACE))
        found, count = (Answer * ANSWERS)(), ctypes.c_int()
        status = library.cublasLtMatmulAlgoGetHeuristic(
            self.lt.handle, self.operation, self.w, self.x, self.y, self.y, preference,
            ctypes.c_int(ANSWERS), found, ctypes.byref(count))
        library.cublasLtMatmulPreferenceDestroy(preference)
        check(status, "heuristic")
        good = [answer for answer in found[:count.value] if answer.state == 0]
        if not good:
            raise RuntimeError("the heuristic has no answer")
        return good

    def on(self, answer, stream):
        """A function that runs this answer."""
        x, w, y, _ = self.tensors
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        address = ctypes.addressof
        arguments = (self.lt.handle, self.operation, address(one), w.data_ptr(), self.w,
                     x.data_ptr(), self.x, address(zero), y.data_ptr(), self.y, y.data_ptr(),
                     self.y, address(answer.algorithm), self.lt.workspace.data_ptr(), WORKSPACE,
                     stream)
        matmul = self.lt.library.cublasLtMatmul

        def run():
            check(matmul(*arguments), "cublasLtMatmul")

        run.kept = one, zero, answer, self  # alive as long as their addresses are used
        return run

    def close(self):
        for layout in (self.w, self.x, self.y):
            self.lt.library.cublasLtMatrixLayoutDestroy(layout)
        self.lt.library.cublasLtMatmulDescDestroy(self.operation)
