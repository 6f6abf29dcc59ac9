# What `kernelgen diff` prints of every kind of change, and its exit statuses.
cat >old.kg <<'KG'
# Pooling.
op pool(x: T[N, H]) -> (y: T[N, (H+2*Q-R)/S+1])
param R = 3, S = 2, Q = 1
where T in f16 f32
{
    y[n, h] = max(r in 0..R) pad(x[n, h*S+r-Q], -inf)
}
goal { speedup 1.5 verify N H = 1 7, 3 64 tune N H = 8 1024 }

# Softmax.
op softmax(x: T[P, D]) -> (y: T[P, D]) where T in f16 bf16 f32
{
    m[p] = max(d) x[p, d]
    e[p, d] = exp(x[p, d] - m[p])
    y[p, d] = e[p, d] / (sum(d) e[p, d])
}

op scale(x: T[N], s: T[N]) -> (y: T[N]) where T in f16 f32
{ y[i] = x[i] * s[i] }

op gone(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }
op before(x: f32[N], s: f32[N]) -> (y: f32[N]) { y[i] = x[i] - s[i] }
op same(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + 1 }
KG
cat >new.kg <<'KG'
op same(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + 1 }

# Pooling.
op pool(x: T[N, H]) -> (y: T[N, (H+2*Q-R)/S+1])
param R = 5, S = 2, Q = 1
where T in f16 f32
{
    y[n, h] = max(r in 0..R) pad(x[n, h*S+r-Q], 0)
}
goal { speedup 2 verify N H = 1 7, 3 65 tune N H = 8 1024 tolerance f16 1e-2 1e-2 }

# Softmax of each row.
op softmax(x: T[P, D]) -> (y: T[P, D]) where T in f16 bf16 f32
{
    top[row] = max(d) x[row, d]
    e[p, d] = exp(x[p, d] - top[p])
    y[p, d] = e[p, d] / (sum(d) e[p, d])
}

op scale(s: T[N], z: T[N]) -> (y: f32[N]) where T in f16 f32
param offset = 0.5
{ y[i] = (z[i] + offset) * s[i] }

op fresh(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] * 3 }
op after(x: f32[N], s: f32[N]) -> (y: f32[N]) { y[i] = x[i] - s[i] }
KG
cp old.kg copy.kg
echo 'op broken(x: f32[N]) -> (y: f32[N]) { y[i] = x[j] }' >broken.kg
printf 'op f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\ngoal { baseline torch "x # \316\273 \033[31m" }\n' >bytes.kg
head -c 3000 /dev/zero >zeros.kg

kernelgen diff old.kg new.kg; echo "exit $?"
kernelgen diff old.kg new.kg --op softmax; echo "exit $?"
kernelgen diff old.kg new.kg --op after --json; echo "exit $?"
kernelgen diff new.kg old.kg --op scale --json; echo "exit $?"
kernelgen diff old.kg copy.kg; echo "exit $?"
kernelgen diff old.kg copy.kg --json --op same; echo "exit $?"

for words in 'old.kg new.kg --op sofmax' 'old.kg' 'old.kg missing.kg' 'old.kg broken.kg' 'broken.kg old.kg' \
    'old.kg bytes.kg' 'zeros.kg old.kg' 'old.kg broken.kg --json'; do
    echo "---- $words"
    kernelgen diff $words; echo "exit $?"
done
