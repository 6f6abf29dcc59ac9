# Names from elsewhere, with what a terminal would take as a command: none of it is shown as it is.
red=$'\033[31m' eight=$'\302\233' latin=$'\351'
shown() { # the status and what was printed, made visible
    "$@" >out 2>&1 </dev/null
    echo "exit $?"
    sed -e 's/compiler ([^:]*)/compiler (CC)/' -e "s|$PWD|HERE|g" -e "s|$KERNELGEN_HOME|HOME|g" out | cat -v
}
cat >copy.kg <<'KG'
op copy(x: f32[P, D]) -> (y: f32[P, D])
{ y[p, d] = x[p, d] }
goal { verify P D = 3 5 }
KG
echo "-- names of files"
shown kernelgen check "no${red}ne.kg"
shown kernelgen check "no${eight}31mne$latin.kg"
shown kernelgen "ch${red}eck"
shown kernelgen check "--a${red}b"
shown kernelgen check one "tw${red}o"
cp copy.kg "na${red}me.kg"
echo 'op other(x: f32[P]) -> (y: f32[P]) { y[p] = x[p] }' >>"na${red}me.kg"
shown kernelgen check "na${red}me.kg"
printf 'void copy(const float *x, float *y, int64_t P, int64_t D) { __builtin_trap(); }\n' >"ker${red}nel.c"
kernelgen verify copy.kg --candidate "ker${red}nel.c" --seed 7 2>&1 | grep -v impostors | sed 's/case [0-9]* ([^)]*)/case N/' | cat -v
kernelgen log copy | grep foreign | grep -o 'foreign.*SIGILL' | sed -e 's/[0-9]* cases/N cases/' -e 's/case [0-9]* ([^)]*)/case N/' | cat -v
echo "-- what is in files"
printf 'op copy(x: f32[P]) -> (y: f32[P])\n{ y[p] = \033[2J x[p] }\n' >bad.kg
shown kernelgen check bad.kg
printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '<"$'\033'"c4', 'fortran_order': False, 'shape': (2,), }" >bad.npy
shown kernelgen run copy.kg --device host --input x=bad.npy --output y=y.npy
printf 'void copy(int \033[2Jx) { }\n' >bad.c
kernelgen verify copy.kg --candidate bad.c 2>&1 | grep -c $'\033'
zero=00000000000000000000000000000000
printf '{"format": "kernelgen wisdom", "version": 2, "lines": 1}\n' >wisdom
printf '{"op": "copy\\u001b[31m", "definition": "%s"}\n' $zero >>wisdom
shown kernelgen wisdom import wisdom
shown kernelgen wisdom list
