#!/usr/bin/env bash
# install.sh BUILD: installs into an empty folder, then does there what a user would: builds examples/run_op.c
# in every documented way and runs it, reads the manual page, looks for the completions.
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export KERNELGEN_HOME=$folder/home

fail() {
    echo "install: $*"
    exit 1
}
runs() { # runs NAME: the program of this name works
    if ! "$folder/$1" >"$folder/printed" 2>&1 || ! grep -q '^verified: yes' "$folder/printed"; then
        fail "$1: $(cat "$folder/printed")"
    fi
    echo "$1 works"
}

cmake --install "$build" --prefix "$folder/first" --strip >"$folder/log"
mv "$folder/first" "$folder/moved" # nothing may depend on where it was installed
installed=$folder/moved
kernelgen=$installed/bin/kernelgen
library=$(find "$installed" -name libkernelgen.a)
libraries=$(dirname "$library")
export PKG_CONFIG_PATH=$libraries/pkgconfig

# ---- pkg-config ----

cd "$folder"
cp "$root/examples/run_op.c" .
if [ -e "$libraries/libkernelgen.so" ]; then
    command=$(sed -n 's|^// *\(cc run_op.c .*\) && ./run_op$|\1|p' run_op.c)
    [ "$command" ] || fail "the head of run_op.c shows no command"
    eval "$command" || fail "does not link as its head says: $command"
    LD_LIBRARY_PATH=$libraries runs run_op
fi
# Whoever links statically links everything: glibc warns that dlopen needs the same glibc at run time.
# shellcheck disable=SC2046
cc -static run_op.c $(pkg-config --static --cflags --libs kernelgen) -o run_static 2>"$folder/warnings" ||
    fail "pkg-config --static: $(cat "$folder/warnings")"
runs run_static

# ---- find_package ----

consume() { # consume NAME ARGUMENT...: configures and builds the project of this folder
    local name=$1
    shift
    cmake -S "$here" -B "$folder/build-$name" -DEXAMPLE="$folder/run_op.c" "$@" >"$folder/log" 2>&1 &&
        cmake --build "$folder/build-$name" >>"$folder/log" 2>&1
}
if [ -e "$libraries/libkernelgen.so" ]; then
    consume shared -DCMAKE_PREFIX_PATH="$installed" || fail "find_package: $(cat "$folder/log")"
    runs build-shared/run_op
    ldd build-shared/run_op | grep -q libkernelgen.so || fail "KernelGen::kernelgen is not shared"
fi
consume static -DCMAKE_PREFIX_PATH="$installed" -DLIBRARY=kernelgen_static ||
    fail "find_package, static: $(cat "$folder/log")"
runs build-static/run_op
ldd build-static/run_op | grep -q libkernelgen.so && fail "KernelGen::kernelgen_static is shared"

cp -r "$installed" "$folder/archive"
find "$folder/archive" -name 'libkernelgen.so*' -delete
find "$folder/archive" -name 'KernelGenShared*' -delete
consume archive -DCMAKE_PREFIX_PATH="$folder/archive" || fail "static alone: $(cat "$folder/log")"
runs build-archive/run_op

version=$("$kernelgen" --version | sed 's/kernelgen //')
consume exact -DCMAKE_PREFIX_PATH="$installed" -DVERSION="$version" ||
    fail "version $version: $(cat "$folder/log")"
consume newer -DCMAKE_PREFIX_PATH="$installed" -DVERSION=99.0 && fail "version 99.0 was accepted"
grep -q "version: $version" "$folder/log" || fail "$version is not named: $(cat "$folder/log")"

# Without the dependencies' files the shared library is found, and the static one says what it needs.
if [ -e "$libraries/libkernelgen.so" ]; then
    PKG_CONFIG_LIBDIR=$folder consume bare -DCMAKE_PREFIX_PATH="$installed" ||
        fail "without dependencies: $(cat "$folder/log")"
fi
PKG_CONFIG_LIBDIR=$folder consume poor -DCMAKE_PREFIX_PATH="$installed" -DLIBRARY=kernelgen_static &&
    fail "the static library was found without its dependencies"
tr '\n' ' ' <"$folder/log" | tr -s ' ' | grep -q "libsqlite3-dev libjansson-dev libelf-dev" ||
    fail "nothing says what is missing: $(cat "$folder/log")"

# ---- The tool, its manual page, its completions ----

(cd / && "$kernelgen" check "$installed/share/kernelgen/ops/bias_relu.kg" >/dev/null)
if command -v man >/dev/null; then
    MANPATH=$installed/share/man man -P cat kernelgen 2>"$folder/warnings" | grep -q '^NAME' ||
        fail "man kernelgen: $(cat "$folder/warnings")"
else
    echo "NOTE: man is not installed, so the manual page was not read"
fi
for script in bash:bash-completion/completions/kernelgen zsh:zsh/site-functions/_kernelgen \
    fish:fish/vendor_completions.d/kernelgen.fish; do
    "$kernelgen" completions "${script%%:*}" | cmp - "$installed/share/${script#*:}" ||
        fail "completions for ${script%%:*}"
done
