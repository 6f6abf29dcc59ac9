# Functions of a file, ranges of inputs, what is never used, and reads that leave their tensor.
cat >functions.kg <<'KG'
# Smooth, and almost x where x is large.
fn mish(x) = x * tanh(softplus(x))
fn gate(x, g) = mish(x) * g

op gated(x: f32[N], g: f32[N]) -> (y: f32[N])
{
    y[i] = gate(x[i], g[i])
}
goal { verify g in 0..1 }
KG
cat >unused.kg <<'KG'
fn twice(x, y) = x * 2
op f(x: T[N], b: T[N], like: f32[M]) -> (y: T[N, M])
param G = 3
where T in f16, S in f32
{
    t[i] = x[i] * 2
    y[i, j] = x[i]
}
KG
cat >outside.kg <<'KG'
op difference(x: f32[N]) -> (y: f32[N])
{
    y[i] = x[i + 1] - x[i]
}
KG
cat >inside.kg <<'KG'
fn pick(c, x) = where(c, x, 0)
op f(x: f32[N]) -> (y: f32[N])
{
    y[i] = pick(x[i], 1)
}
KG
kernelgen check functions.kg --size N=8 | sed -n '/^```kg/,/^```$/p'; echo "exit $?"
kernelgen check unused.kg --size N=8,M=2 >document; echo "exit $?"
kernelgen check outside.kg --size N=8; echo "exit $?"
kernelgen check inside.kg --size N=8; echo "exit $?"
kernelgen verify functions.kg --size N=300 --device host | grep -o 'passed'; echo "exit $?"
