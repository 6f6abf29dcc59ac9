# What `kernelgen diff` says of records is what a search for them finds.
cat >measured.kg <<'KG'
# Doubles.
op twice(x: f32[P]) -> (y: f32[P])
{ y[p] = x[p] * 2 }
goal { tune P = 3000 }
KG
cp measured.kg same.kg
{ echo 'op other(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }'; echo; cat measured.kg; } >moved.kg
sed 's/Doubles/Doubles all/' measured.kg >comment.kg
sed 's/3000 }/3000 verify P = 7 }/' measured.kg >goal.kg
sed 's/\* 2/* 3/' measured.kg >formula.kg
kernelgen build measured.kg --device host --rigor measure --time 2 >/dev/null 2>&1 || echo "not built"
for version in same moved comment goal formula; do
    said=$(kernelgen diff measured.kg $version.kg --op twice --json | grep -o '"records_found": [a-z]*')
    kernelgen explain $version.kg --op twice --device host --rigor wisdom >out 2>&1
    echo "$version: $said, $(grep -q 'nothing is known' out && echo 'nothing is known' || head -n 1 out)"
done
