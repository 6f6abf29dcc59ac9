# --time limits the search; the time of the first plan, which comes before it, is told.
# A search that was not finished does not make the next command search.
cat >rows.kg <<'KG'
op rows(x: f32[P, D], w: f32[D]) -> (y: f32[P, D])
{
    m[p] = mean(d) x[p, d]
    v[p] = mean(d) (x[p, d] - m[p]) * (x[p, d] - m[p])
    y[p, d] = (x[p, d] - m[p]) / sqrt(v[p] + 1e-5) * w[d]
}
goal { speedup 0.01 tune P D = 2000 3000 }
KG
kernelgen build rows.kg --rigor measure --time 0.5 >out 2>notes
echo "build: exit $?"
sed -n 's/the first plan took [0-9.]* s; //p' notes
kernelgen wisdom list | grep -o ' estimate '
kernelgen bench rows.kg --timings >out 2>notes
echo "bench: exit $?"
grep '^kernelgen' notes
kernelgen explain rows.kg --json | grep -o '"origin": "[a-z ]*"'
