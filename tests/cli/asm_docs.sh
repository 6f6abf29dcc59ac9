# What docs/asm.md shows is what the tool prints: each block that begins with "$ kernelgen", unless
# it leaves something out ("...").
awk -v folder="$PWD" '
    /^```/ { inside = !inside; if (inside) { count++; file = folder "/block" count } else close(file); next }
    inside { print >file }' "$ROOT/docs/asm.md"
cd "$ROOT/tests/data/asm" || exit
for block in "$OLDPWD"/block*; do
    command=$(sed -n '1s/^\$ //p' "$block")
    grep -qx '\.\.\.' "$block" && continue
    case $command in kernelgen*) ;; *) continue ;; esac
    echo "$command"
    $command | diff <(sed 1d "$block") - # no quotes in these commands
done
