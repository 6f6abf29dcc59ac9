#!/usr/bin/env bash
# emitted_files.sh PROGRAM OPS TARGET: emits every shipped definition and has compilers look for
# warnings in the files: for `host` gcc and clang, as far as they are installed, for `cuda` nvcc, which
# takes seconds for a file, so that it sees every eighth; KG_OPS=all shows it all. Products with
# quantised weights, which have the most ways to be written, nvcc sees all, for bf16, too.
#
# Exit status 0: no compiler says anything; 1: one does, and what follows; 77: there is no compiler.
set -u
program=$1 ops=$2 target=$3
export CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
PATH=$PATH:$CUDA_HOME/bin

compilers=() every=1 options=() suffix=c
case $target in
host)
    advised="-march=native -fno-math-errno -fno-trapping-math -fopenmp"
    for compiler in gcc clang; do
        command -v $compiler >/dev/null &&
            compilers+=("$compiler -std=c17 -Wall -Wextra $advised -fsyntax-only")
    done
    ;;
cuda)
    command -v nvcc >/dev/null &&
        compilers=("nvcc -std=c++17 -arch=sm_90a -Xcompiler -Wall,-Wextra --Werror all-warnings -c -o file.o")
    options=(--device sm_90a --launcher)
    suffix=cu
    [ "${KG_OPS:-}" = all ] || every=8
    ;;
esac
[ ${#compilers[@]} -gt 0 ] || { echo "no compiler for $target"; exit 77; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export KERNELGEN_HOME=$folder/home
status=0 seen=0 looked=0
look() { # NAME: of what is in the file
    local compiler
    for compiler in "${compilers[@]}"; do
        looked=$((looked + 1))
        if ! $compiler "file.$suffix" >said 2>&1 || [ -s said ]; then
            echo "$1: ${compiler%% *} says"
            cat said
            status=1
        fi
    done
}
while IFS=: read -r file op; do
    seen=$((seen + 1))
    case $target:$file in
    cuda:*/quantised.kg)
        if "$program" emit "$file" --op "$op" "${options[@]}" --target cuda --dtype T=bf16 \
            --out file.cu 2>said; then
            look "$op, bf16"
        elif ! grep -q "called 'T'" said; then
            cat said
            status=1
        fi
        ;;
    *) [ $((seen % every)) = 0 ] || continue ;;
    esac
    if "$program" emit "$file" --op "$op" --target "$target" "${options[@]}" --out "file.$suffix"; then
        look "$op"
    else
        status=1
    fi
done < <(grep -oE '^op [a-z_0-9A-Z]+' "$ops"/*.kg | sed 's/:op /:/')
echo "$looked files of $seen definitions"
[ "$looked" -gt 20 ] || status=1
exit $status
