# The files that `kernelgen diff` names are those that differ: both versions are written by `emit`,
# and compared byte by byte, for changes of every kind.
cat >norm.kg <<'KG'
# Rows over their root mean square.
op norm(x: T[P, D], w: T[D]) -> (y: T[P, D])
param eps = 1e-5, G = 2
where T in f16 f32
{
    m[p] = mean(d) x[p, d] * x[p, d]
    y[p, d] = x[p, d] * rsqrt(m[p] + eps) * w[d] + G
}
goal {
    baseline torch "x * w"
    speedup 1.5
    rounds 3
    tolerance f16 1e-3 1e-3
    verify P D = 1 1, 7 513
    verify x in -1..1
    tune P D = 64 512
}
KG
sed '/baseline/d' norm.kg >plain.kg
kernelgen emit norm.kg --target bundle --out norm >/dev/null
kernelgen emit plain.kg --target bundle --out plain >/dev/null

named() { # named WORD: the files behind it, in order
    sed -n "s/^  $1  *\(norm_[^(]*\).*/\1/p" said | tr -d ' ' | tr ',' '\n' | sort
}
change() { # change BASE WHAT SED: edits BASE, and checks what diff says of it
    sed "$3" "$1.kg" >new.kg
    cmp -s "$1.kg" new.kg && echo "$2: nothing was edited"
    kernelgen diff "$1.kg" new.kg >said
    status=$?
    rm -rf new
    kernelgen emit new.kg --target bundle --out new >/dev/null 2>&1 || echo "$2: it is not emitted"
    for file in norm_triton.py norm_baseline.py norm_accuracy.py norm_performance.py; do
        cmp -s "$1/$file" "new/$file" && echo "$file" >>kept || echo "$file" >>changed
    done
    { named regenerate; named optional; } | sort >named_changed
    named keep >named_kept
    touch kept changed
    sort changed | cmp -s - named_changed && sort kept | cmp -s - named_kept ||
        { echo "$2: WRONG: these differ:"; cat changed; cat said; }
    echo "$1, $2: exit $status, $(sed -n '1s/^norm: //p' said); regenerate" \
        "$(named regenerate | sed 's/norm_//; s/\.py//' | paste -sd' ' -); optional" \
        "$(named optional | sed 's/norm_//; s/\.py//' | paste -sd' ' -)"
    rm -f kept changed
}
for base in norm plain; do
    change $base 'default of a param' 's/eps = 1e-5/eps = 1e-6/'
    change $base 'formula' 's/ + G/ - G/'
    change $base 'name of an input' 's/\bw\b/v/g'
    change $base 'name of an output' 's/\by\b/z/g'
    change $base 'order of inputs' 's/x: T\[P, D\], w: T\[D\]/w: T[D], x: T[P, D]/'
    change $base 'name of a size' 's/\bP\b/Q/g'
    change $base 'dtypes' 's/T in f16 f32/T in f16 bf16 f32/'
    change $base 'dtype of the output' 's/(y: T/(y: f32/'
    change $base 'shape' 's/w: T\[D\]/w: T[D + 1]/'
    change $base 'a new param' 's/G = 2/G = 2, H = 3/'
    change $base 'name of a param' 's/\bG\b/H/g'
    change $base 'speed-up' 's/speedup 1.5/speedup 2/'
    change $base 'rounds' 's/rounds 3/rounds 4/'
    change $base 'tolerance' 's/1e-3 1e-3/1e-3 1e-4/'
    change $base 'sizes to verify' 's/7 513/7 515/'
    change $base 'range' 's/-1\.\.1/-1..2/'
    change $base 'sizes to tune' 's/64 512/64 1024/'
    change $base 'no goal' '/^goal/,$d'
    change $base 'names inside' 's/\bm\b/n/; s/m\[/n[/; s/mean(d) x\[p, d\] \* x\[p, d\]/mean(k) x[p, k] * x[p, k]/'
    change $base 'comment above' 's/# Rows/# All rows/'
    change $base 'comment above and speed-up' 's/# Rows/# All rows/; s/speedup 1.5/speedup 2/'
    change $base 'comment inside' 's/^{/{ # here/'
done
change norm 'baseline' 's/"x \* w"/"w * x"/'
change norm 'no baseline' '/baseline/d'
