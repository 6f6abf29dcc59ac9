#!/usr/bin/env bash
# install.sh BUILD: installs into an empty folder, then builds and runs a program against it the two
# ways others would: pkg-config and find_package(kernelgen).
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$build" --prefix "$folder/first" --strip >"$folder/log"
mv "$folder/first" "$folder/moved" # nothing may depend on where it was installed
libraries=$(dirname "$(find "$folder/moved" -name libkernelgen.so)")
export PKG_CONFIG_PATH=$libraries/pkgconfig LD_LIBRARY_PATH=$libraries

# shellcheck disable=SC2046
cc "$here/consumer.c" -o "$folder/by-pkg-config" $(pkg-config --cflags --libs kernelgen)
"$folder/by-pkg-config"

cmake -S "$here" -B "$folder/build" -DCMAKE_PREFIX_PATH="$folder/moved" >>"$folder/log"
cmake --build "$folder/build" >>"$folder/log"
"$folder/build/consumer"
