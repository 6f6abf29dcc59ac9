# What 'build' ships is what is known afterwards: the bundle, the wisdom and 'emit' agree.
cat >ops.kg <<'OPS'
op scale(x: f32[P, D], s: f32[D]) -> (y: f32[P, D]) { y[p, d] = x[p, d] * s[d] }
op total(x: f32[P, D]) -> (y: f32[P]) { y[p] = sum(d) x[p, d] }
op running(x: f32[P, D]) -> (y: f32[P, D]) { y[p, d] = sum(k <= d) x[p, k] }
op largest(x: f32[P, D]) -> (y: i32[P]) { y[p] = argmax(d) x[p, d] }
OPS
for op in scale total running largest; do
    words="ops.kg --op $op --size P=300,D=512"
    kernelgen build $words --time 1 --rigor measure --out bundle --json >built 2>notes
    status=$?
    case $status in 0 | 4) ;; *) echo "exit $status"; cat notes ;; esac
    chosen=$(sed 's/^{"op": "[a-z]*", "choice": "\([^"]*\)".*/\1/' built)
    kernelgen emit $words --target host >emitted
    cmp emitted bundle/$op.c
    kernelgen wisdom list $op --json | grep -qF "\"$chosen\"" || echo "$op: wisdom is not '$chosen'"
    kernelgen check-bundle bundle --def $words >agreed || cat agreed
    kernelgen explain $words | grep -F "Chosen: \`$chosen\`" >/dev/null || echo "$op: explain"
    echo "$op"
done
