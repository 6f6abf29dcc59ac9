# 'build' says of every candidate on record, in a line each, why it was kept or lost.
cat >scale.kg <<'OPS'
op scale(x: f32[P, D]) -> (y: f32[P, D]) { y[p, d] = 2 * x[p, d] }
goal { speedup 1000 rounds 1 } # never met: there is a search
OPS
words="scale.kg --size P=300,D=512"
kernelgen build $words --rigor measure >built 2>notes
test $? -eq 4 || cat notes
line='^ *([0-9.]+ (ns|us|ms|s)  | {12}(pruned|compile|wrong|fault|timeout): )\S'
lines=$(sed -n '/^candidates/,/^time/p' built | grep -cE "$line")
known=$(kernelgen explain $words --json | grep -o '"outcome":' | wc -l)
test "$lines" -gt 1 && test "$lines" -eq "$known" || echo "$lines lines, $known on record"
sed -n '/^candidates/{n;p;}' built | grep -oE 'kept: .*'
chosen=$(sed -n 's/^chosen    //p' built)
kernelgen explain $words --json >explained
grep -oE '"reason": *null' explained
grep -qF "\"choice\":\"$chosen\"" explained || grep -qF "\"choice\": \"$chosen\"" explained || echo "not among them: $chosen"
