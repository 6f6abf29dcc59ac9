"""Cases for measuring plans on the host: the shipped ops at sizes that one core does in
milliseconds, and definitions of several statements drawn by a seed."""

import json
import os
import random
import re
import subprocess

# Bytes and operations over 4: about a nanosecond of one core's plain loops each.
LEAST_WORK, MOST_WORK = 2.0**20, 2.0**22
# Of all tensors together: an op that reads little of them would else grow beyond memory.
MOST_BYTES = 2.0**28
LEAST_DRAWN, MOST_DRAWN = 2.0**17, 2.0**26


class Case:
    """One line: a definition, its dtype ("" where it has no variable) and its sizes."""

    def __init__(self, path, op, dtype, sizes):
        self.path, self.op, self.dtype, self.sizes = path, op, dtype, sizes

    def words(self):
        return ",".join(f"{name}={size}" for name, size in self.sizes.items())

    def __str__(self):
        return f"{self.path} {self.op} T={self.dtype or '-'} {self.words()}"

    def options(self):
        dtype = ["--dtype", f"T={self.dtype}"] if self.dtype else []
        return [self.path, "--op", self.op, *dtype, "--size", self.words()]


def read_ops(path):
    """(name, dtypes, rows of sizes) of every op of a file; rows that tune come first."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"#.*", "", file.read())
    for part in re.split(r"^op ", text, flags=re.M)[1:]:
        dtypes = re.search(r"where \w+ in ([\w ]+)", part)
        rows = []
        for word in ("tune", "verify"):
            for names, values in re.findall(word + r"\s+([A-Z][\w ]*?)\s*=\s*([\d ,\n]+)", part):
                names = names.split()
                some = [dict(zip(names, map(int, row.split()))) for row in values.split(",")]
                some = [row for row in some if len(row) == len(names)]
                rows.append(max(some, key=lambda row: sum(row.values())))
        yield part[:part.index("(")].strip(), dtypes.group(1).split() if dtypes else [""], rows


def work_and_bytes(kernelgen, case):
    """Elements that plain loops step over, and bytes of all tensors; None where the sizes do not
    fit the definition."""
    done = subprocess.run([kernelgen, "check", *case.options(), "--json"], capture_output=True,
                          text=True)
    if done.returncode != 0:
        return None, 0
    document = json.loads(done.stdout)
    moved = document["read_bytes"] + document["write_bytes"]
    return (document["operations"] / 4 + moved / 4,
            sum(tensor["bytes"] for tensor in document["tensors"]))


def work_of(kernelgen, case):
    return work_and_bytes(kernelgen, case)[0]


def fit_sizes(kernelgen, case, scale=1):
    """Halves or doubles the sizes, the largest or the smallest that allows it, until a run is
    long enough to be timed and short enough to be repeated, or tensors are as large as they may
    become. The work is `scale` times that for one core of a CPU."""
    for _ in range(40):
        work = work_of(kernelgen, case)
        if work is None or LEAST_WORK <= work / scale <= MOST_WORK:
            return work is not None
        grows = work / scale < LEAST_WORK
        names = sorted(case.sizes, key=case.sizes.get, reverse=not grows)
        for name in names:
            size = case.sizes[name]
            if (not grows and size < 2) or (grows and size <= 5 and len(names) > 2):
                continue
            changed = Case(case.path, case.op, case.dtype,
                           {**case.sizes, name: size * 2 if grows else size // 2})
            changed_work, bytes_ = work_and_bytes(kernelgen, changed)
            if grows and bytes_ > MOST_BYTES:
                continue
            if changed_work not in (None, work):
                case.sizes = changed.sizes
                break
        else:
            return True
    return True


def shipped_cases(kernelgen, folder, narrow="f16", fit=True):
    """Without `fit`, sizes are those of the goals."""
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        for op, dtypes, rows in read_ops(path) if name.endswith(".kg") else ():
            wide = "f32" if "f32" in dtypes else dtypes[0]
            for dtype in [wide] + ([narrow] if narrow in dtypes and narrow != wide else []):
                case = Case(path, op, dtype, dict(rows[0]))
                if not fit or fit_sizes(kernelgen, case):
                    yield case


# Definitions of several statements. What stands in braces is drawn.
TEMPLATES = {
    "qkv": ("x: T[M, K], wq: T[K, N], wk: T[K, L], wv: T[K, L]",
            "q: T[M, N], k: T[M, L], v: T[M, L]",
            ["q[m, n] = sum(i) x[m, i] * wq[i, n]", "k[m, n] = sum(i) x[m, i] * wk[i, n]",
             "v[m, n] = sum(i) x[m, i] * wv[i, n]"]),
    "swiglu": ("x: T[M, K], g: T[K, N], u: T[K, N]", "y: T[M, N]",
               ["a[m, n] = sum(k) x[m, k] * g[k, n]", "b[m, n] = sum(k) x[m, k] * u[k, n]",
                "y[m, n] = {f}(a[m, n]) * b[m, n]"]),
    "swiglu_nt": ("x: T[M, K], g: T[N, K], u: T[N, K]", "y: T[M, N]",
                  ["a[m, n] = sum(k) x[m, k] * g[n, k]", "b[m, n] = sum(k) x[m, k] * u[n, k]",
                   "y[m, n] = {f}(a[m, n]) * b[m, n]"]),
    "rms_linear": ("x: T[M, K], s: T[K], w: T[K, N]", "y: T[M, N]",
                   ["r[m] = rsqrt((mean(k) x[m, k] * x[m, k]) + 1e-6)",
                    "h[m, k] = x[m, k] * r[m] * s[k]", "y[m, n] = sum(k) h[m, k] * w[k, n]"]),
    "rms_linear_nt": ("x: T[M, K], s: T[K], w: T[N, K]", "y: T[M, N]",
                      ["r[m] = rsqrt((mean(k) x[m, k] * x[m, k]) + 1e-6)",
                       "y[m, n] = sum(k) (x[m, k] * r[m] * s[k]) * w[n, k]"]),
    "layer_linear": ("x: T[M, K], g: T[K], b: T[K], w: T[K, N]", "y: T[M, N]",
                     ["c[m] = mean(k) x[m, k]",
                      "v[m] = mean(k) (x[m, k] - c[m]) * (x[m, k] - c[m])",
                      "h[m, k] = (x[m, k] - c[m]) * rsqrt(v[m] + 1e-5) * g[k] + b[k]",
                      "y[m, n] = {f}(sum(k) h[m, k] * w[k, n])"]),
    "mlp": ("x: T[M, K], w: T[K, N], v: T[N, L]", "y: T[M, L]",
            ["h[m, n] = {f}(sum(k) x[m, k] * w[k, n])", "y[m, l] = sum(n) h[m, n] * v[n, l]"]),
    "lora": ("x: T[M, K], w: T[K, N], a: T[K, R], b: T[R, N]", "y: T[M, N]",
             ["t[m, r] = sum(k) x[m, k] * a[k, r]",
              "y[m, n] = (sum(k) x[m, k] * w[k, n]) + (sum(r) t[m, r] * b[r, n])"]),
    "softmax_product": ("x: T[M, K], w: T[K, N]", "y: T[M, N]",
                        ["c[m] = max(k) x[m, k]", "e[m, k] = exp(x[m, k] - c[m])",
                         "p[m, k] = e[m, k] / (sum(k) e[m, k])",
                         "y[m, n] = sum(k) p[m, k] * w[k, n]"]),
    "product_softmax": ("x: T[M, K], w: T[K, N]", "y: T[M, N]",
                        ["s[m, n] = sum(k) x[m, k] * w[k, n]", "c[m] = max(n) s[m, n]",
                         "e[m, n] = exp(s[m, n] - c[m])",
                         "y[m, n] = e[m, n] / (sum(n) e[m, n])"]),
    "product_argmax": ("x: T[M, K], w: T[K, N]", "i: i32[M], c: T[M]",
                       ["s[m, n] = sum(k) x[m, k] * w[k, n]", "i[m] = argmax(n) s[m, n]",
                        "c[m] = max(n) s[m, n]"]),
    "argmax_rows": ("x: T[M, N], g: T[N]", "i: i32[M], y: T[M, N]",
                    ["h[m, n] = {f}(x[m, n]) * g[n]", "i[m] = argmax(n) h[m, n]",
                     "y[m, n] = h[m, n] - (max(n) h[m, n])"]),
    "columns": ("x: T[M, N]", "y: T[M, N], c: T[N]",
                ["c[n] = mean(m) x[m, n]", "v[n] = mean(m) (x[m, n] - c[n]) * (x[m, n] - c[n])",
                 "y[m, n] = (x[m, n] - c[n]) * rsqrt(v[n] + 1e-5)"]),
    "moments": ("x: T[M, N]", "a: T[M], b: T[M], h: T[M]",
                ["a[m] = mean(n) x[m, n]",
                 "b[m] = sqrt(mean(n) (x[m, n] - a[m]) * (x[m, n] - a[m]))",
                 "h[m] = (max(n) x[m, n]) - (min(n) x[m, n])"]),
    "chain": ("x: T[M, N], g: T[N], z: T[M, N]", "y: T[M, N], u: T[M, N]",
              ["a[m, n] = {f}(x[m, n] * g[n])", "b[m, n] = a[m, n] + z[m, n]",
               "u[m, n] = b[m, n] * b[m, n]", "y[m, n] = {f}(b[m, n]) * a[m, n]"]),
    "running": ("x: T[M, N]", "y: T[M, N]",
                ["a[m, n] = {f}(x[m, n])", "c[m, n in 0..N] = sum(j <= n) a[m, j]",
                 "y[m, n] = c[m, n] / ((max(j) abs(a[m, j])) + 1.0)"]),
    "bias_losses": ("x: T[M, K], w: T[N, K], t: T[M, N]", "l: f32[M]",
                    ["p[m, n] = {f}(sum(k) x[m, k] * w[n, k])",
                     "l[m] = mean(n) (p[m, n] - t[m, n]) * (p[m, n] - t[m, n])"]),
    "gram": ("x: T[M, K]", "g: T[M, M], d: T[M]",
             ["g[m, n] = sum(k) x[m, k] * x[n, k]", "d[m] = sqrt(sum(k) x[m, k] * x[m, k])"]),
}
RANGES = {"M": (16, 1024), "K": (32, 1024), "N": (32, 1024), "L": (16, 512), "R": (4, 32)}


def draw_size(random_, name, scale):
    low, high = (scale * end for end in RANGES[name])
    size = int(round(low * (high / low) ** random_.random()))
    return size if random_.random() < 0.4 else max(low, size // 16 * 16)  # aligned and odd ones


def drawn_cases(kernelgen, seed, count, folder, scale=1):
    """Writes the definitions into the folder. The first of them take every template once. Sizes are
    `scale` times those for a host."""
    random_ = random.Random(seed)
    names = list(TEMPLATES)
    random_.shuffle(names)
    for i in range(count):
        name = names[i] if i < len(names) else random_.choice(names)
        inputs, outputs, lines = TEMPLATES[name]
        function = random_.choice(["relu", "silu", "gelu", "tanh", "abs"])
        body = "\n".join("    " + line.replace("{f}", function) for line in lines)
        path = os.path.join(folder, f"drawn{i}.kg")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"op {name}({inputs}) -> ({outputs})\nwhere T in f16 bf16 f32\n{{\n{body}\n}}\n")
        used = [size for size in RANGES if re.search(rf"\b{size}\b", inputs)]
        case = Case(path, name, random_.choice(["f32", "f32", "f16", "bf16"]), {})
        while not case.sizes or not LEAST_DRAWN <= work_of(kernelgen, case) / scale**3 <= MOST_DRAWN:
            case.sizes = {size: draw_size(random_, size, scale) for size in used}
        yield case
