#!/usr/bin/env bash
# check_rules.sh ROOT: makes a tree of a few files that keeps the rules of tools/check, then breaks each
# rule once, and sees that the breach is named.
set -eu
root=$(cd "$1" && pwd)
command -v git >/dev/null && command -v nm >/dev/null || { echo "git or nm is missing"; exit 77; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/good"
cd "$folder/good"

write() { # write PATH LINE...
    local path=$1
    shift
    mkdir -p "$(dirname "$path")"
    printf '%s\n' "$@" >"$path"
}
build() { # what the rules look for in a build
    local source object
    for source in $(find src cli -name '*.c'); do
        object=build/dev/CMakeFiles/kg_objects.dir/$source.o
        [ "$source" != cli/main.c ] || object=build/dev/CMakeFiles/kernelgen.dir/$source.o
        mkdir -p "$(dirname "$object")"
        cc -fPIC -fvisibility=hidden -Iinclude -Isrc -c "$source" -o "$object"
    done
    cc -shared -o build/dev/libkernelgen.so $(find build/dev/CMakeFiles/kg_objects.dir -name '*.o')
}

# ---- A tree that keeps the rules ----

mkdir tools
cp "$root"/tools/{check,rooms.py,skeletons.py} tools
cp "$root/.clang-format" .
write docs/architecture.md '## Layers' '' \
    '| room | from | headers for other layers | for rooms of its layer |' '|---|---|---|---|' \
    '| `base` | text | every header | |' \
    '| `lang` | ops | `lang.h` | |' \
    '| `lang/deep` | types | | `deep.h` |' \
    '| `lang/side` | words | | |' \
    '| `api` | all of it | | |'
write include/kernelgen.h '#define KG_API __attribute__((visibility("default")))' \
    'KG_API int kg_version(void);'
write src/base/text.h 'int kg_text_length(const char *text);'
write src/base/text.c '#include "base/text.h"' '' 'int kg_text_length(const char *text)' '{' \
    '    return text[0] != 0;' '}'
write src/lang/lang.h 'int kg_lang_parse(const char *text);'
write src/lang/lang.c '#include "lang/lang.h"' '' '#include "base/text.h"' '' \
    'int kg_lang_parse(const char *text)' '{' '    return kg_text_length(text);' '}'
write src/lang/lexer.h 'int kg_lexer_next(int at);'
write src/lang/lexer.c '#include "lang/lexer.h"' '' 'int kg_lexer_next(int at)' '{' \
    '    return at + 1;' '}'
write src/lang/deep/deep.h 'int kg_deep_type(int at);' 'const char *kg_deep_skeleton(void);'
write src/lang/deep/deep.c '#include "lang/deep/deep.h"' '' '#include "lang/lexer.h"' '' \
    'int kg_deep_type(int at)' '{' '    return kg_lexer_next(at);' '}' '' \
    'const char *kg_deep_skeleton(void)' '{' '    return "cuda/prelude.cuh";' '}'
write src/lang/side/side.c '#include "lang/deep/deep.h"' '' 'int kg_side_word(int at);' '' \
    'int kg_side_word(int at)' '{' '    return kg_deep_type(at);' '}'
write src/api/public.c '#include "kernelgen.h"' '#include "lang/lang.h"' '' 'int kg_version(void)' \
    '{' '    return kg_lang_parse("1");' '}'
write cli/main.c '#include "kernelgen.h"' '' 'int main(void)' '{' '    return kg_version();' '}'
write kernels/cuda/prelude.cuh '// Before all others.' '#include <stdint.h>'
write .gitignore /build/
git init -q .
build

# ---- One breach each ----

failures=0
fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}
# names STATUS RULE TEXT...: tools/check RULE ends with this status and says each text. Run in a copy.
names() {
    local status=0 expected=$1 rule=$2 text
    shift 2
    # shellcheck disable=SC2086
    tools/check $rule >"$folder/said" 2>&1 || status=$?
    [ "$status" = "$expected" ] || fail "$rule: exit status $status, not $expected"
    for text in "$@"; do
        grep -qF -e "$text" "$folder/said" || fail "$rule: does not say: $text"
    done
    [ "$failures" = 0 ] || { sed 's/^/    /' "$folder/said"; exit 1; }
}
fresh() { # the tree that keeps the rules, for the next breach
    cd "$folder"
    rm -rf bad
    cp -a good bad
    cd bad
}

# Everything is seen where CI is set, but for the layout on machines without the tool for it.
unset CI
rules="layers private links circles skeletons lengths width banned space names paths flags symbols"
layout=no
if clang-format-14 --version >/dev/null 2>&1 || clang-format --version 2>/dev/null | grep -q ' 14\.'; then
    layout=yes
    rules="layout $rules"
fi
fresh
CI=true names 0 "$rules" "all is well"
! grep -q NOTE "$folder/said" || fail "the good tree: $(cat "$folder/said")"

fresh # an include of a layer below
write src/base/text.c '#include "base/text.h"' '#include "lang/lang.h"'
names 1 layers 'src/base/text.c:2: base includes "lang/lang.h", whose layer stands below it'

fresh # the order of the page is what counts
sed -i '/^| `base`/d' docs/architecture.md
echo '| `base` | text | every header | |' >>docs/architecture.md
names 1 layers 'src/lang/lang.c:3: lang includes "base/text.h", whose layer stands below it'

fresh # the tool reaches into the library
write cli/main.c '#include "lang/lang.h"'
names 1 layers 'cli/main.c:1: includes "lang/lang.h"; the tool may only use kernelgen.h'

fresh # rooms and rows
write src/lang/new/new.c 'int kg_new;'
sed -i 's/`deep.h`/`deep.h`, `gone.h`/; s/`lang\/side`/`lang\/old`/' docs/architecture.md
names 1 layers 'src/lang/new has no row' 'src/lang/side has no row' \
    'a row for src/lang/old, which does not exist' 'src/lang/deep/gone.h, which does not exist'

fresh # no table at all
write docs/architecture.md '## Layers' 'To be written.'
names 1 layers 'has no table of rooms' 'src/base has no row'

fresh # a header of another layer that is not listed
write src/api/public.c '#include "lang/lexer.h"'
names 1 private 'src/api/public.c:1: "lang/lexer.h" is not listed'

fresh # a header for rooms of the layer, included from another layer
write src/api/public.c '#include "lang/deep/deep.h"'
names 1 private 'src/api/public.c:1: "lang/deep/deep.h" is not listed'

fresh # a folder's header is not for the folder around it, unless listed
write src/lang/side/word.h 'int kg_side_word(int at);'
write src/lang/lang.c '#include "lang/side/word.h"'
names 1 private 'src/lang/lang.c:1: "lang/side/word.h" is not listed'

fresh # a declaration by hand hides the arrow from the preprocessor, not from the linker
write src/base/text.c 'int kg_lang_parse(const char *text);' 'int kg_text_length(const char *text)' \
    '{' '    return kg_lang_parse(text);' '}'
build
names 0 "layers private" "all is well"
names 1 links \
    'src/base/text.c -> src/lang/lang.c by kg_lang_parse, whose layer stands below it'

fresh # ... and in the tool
write cli/main.c 'int kg_lang_parse(const char *text);' 'int main(void)' '{' \
    '    return kg_lang_parse("");' '}'
build
names 1 links 'cli/main.c -> src/lang/lang.c by kg_lang_parse; the tool may only use'

fresh # two rooms need one another
write src/lang/lexer.c 'int kg_deep_type(int at);' 'int kg_lexer_next(int at)' '{' \
    '    return kg_deep_type(at);' '}'
build
names 1 circles '2 files of 2 rooms need one another: src/lang/deep/deep, src/lang/lexer' \
    '    src/lang/deep/deep.c -> src/lang/lexer.c by kg_lexer_next' \
    '    src/lang/lexer.c -> src/lang/deep/deep.c by kg_deep_type'

fresh # ... one by a symbol, the other by a header
write src/lang/lexer.h '#include "lang/deep/deep.h"'
names 1 circles '    src/lang/lexer.h -> src/lang/deep/deep.h by "lang/deep/deep.h"'

fresh # a circle of six files in a room is legal, one of seven is not
for n in 1 2 3 4 5 6; do
    write "src/base/ring_$n.c" "int kg_ring_$((n % 6 + 1))(void);" "int kg_ring_$n(void)" '{' \
        "    return kg_ring_$((n % 6 + 1))();" '}'
done
build
names 0 circles "all is well"
write src/base/ring_6.c "int kg_ring_7(void);" "int kg_ring_6(void)" '{' "    return kg_ring_7();" '}'
write src/base/ring_7.c "int kg_ring_1(void);" "int kg_ring_7(void)" '{' "    return kg_ring_1();" '}'
build
names 1 circles '7 files of src/base need one another, 6 may: src/base/ring_1, src/base/ring_2' \
    '    src/base/ring_7.c -> src/base/ring_1.c by kg_ring_1'

fresh # skeletons: named and absent, there and not named, an include of one
write kernels/cuda/prelude.cuh '// Before all others; see gone.cuh.' '#include "maths.cuh"'
write kernels/cuda/maths.cuh '#include <stdint.h>'
sed -i 's/"cuda\/prelude.cuh"/"cuda\/absent.cuh"/' src/lang/deep/deep.c
names 1 skeletons 'kernels/cuda/prelude.cuh:1: there is no gone.cuh' \
    'kernels/cuda/prelude.cuh:2: includes with quotes' \
    'src/lang/deep/deep.c:12: there is no kernels/cuda/absent.cuh' \
    'no source names kernels/cuda/maths.cuh' 'no source names kernels/cuda/prelude.cuh'

fresh # .cuh files are text like any other
mkdir kernels/host src/lang/cuda
write kernels/cuda/prelude.cuh "$(printf 'int a;\t// tab')"
write kernels/host/wide.h "// $(printf '%098d' 0)" "// $(printf '%097d' 0)"
write src/lang/cuda/prelude.cuh
names 1 "space width names" 'tab or trailing space: kernels/cuda/prelude.cuh:1' \
    'wider than 100 characters: kernels/host/wide.h:1' \
    'two files of one name: src/lang/cuda/prelude.cuh and kernels/cuda/prelude.cuh'
! grep -qF 'wide.h:2' "$folder/said" || fail "100 characters are not wider than 100"

if [ $layout = yes ]; then
    fresh
    write kernels/cuda/prelude.cuh 'int   a;'
    write src/base/text.h 'int  kg_text_length(const char *text);'
    names 1 layout 'kernels/cuda/prelude.cuh:1' 'src/base/text.h:1'
fi

fresh # the older rules
write src/base/text.c '#include <string.h>' 'char *kg_copy(char *to, const char *from)' '{' \
    '    return strcpy(to, from);' '}'
seq 1001 >tools/long.py
echo "cd /$(printf 'root')/tree" >tools/where.sh
names 1 "banned lengths paths" 'banned function: src/base/text.c:4' \
    'tools/long.py has 1001 lines; 1000 is the limit' 'path of one machine: tools/where.sh:1'

fresh # an error of the library that names an option of the tool, on whatever line of the call
write src/base/text.c '#include "base/text.h"' '' 'int kg_text_length(const char *text)' '{' \
    '    return kg_error_set(0, 1, "%s is too long; "' '                        "give --size", text);' \
    '}' 'const char *kg_text_option = "--version";'
names 1 flags 'names an option of the tool: src/base/text.c:6'

fresh # exports
write include/kernelgen.h '#define KG_API __attribute__((visibility("default")))' \
    'KG_API int kg_renamed(void);'
names 1 symbols 'exports what kernelgen.h does not declare: kg_version' \
    'does not export: kg_renamed'

# ---- What cannot be seen ----

fresh # no build: a note here, a breach in CI
rm -r build
names 0 "links circles symbols" 'NOT checked: links: no object files are built' \
    'NOT checked: circles: no object files are built' \
    'NOT checked: symbols: no shared library is built' 'all is well'
CI=true names 1 "links circles symbols" 'NOT checked: links:' 'NOT checked: circles:' \
    'NOT checked: symbols:' '3 breaches'

fresh # a source that changed after the build, one that was never built
touch -d '+1 minute' src/lang/lexer.c
write src/lang/new.c 'int kg_new;'
names 0 links 'NOT checked: links: not built in build/dev since they were changed: src/lang/lexer.c, src/lang/new.c'
CI=true names 1 links 'NOT checked: links:'

fresh # no clang-format, no Python
mkdir "$folder/bin"
for tool in bash git nm grep sed awk xargs tr cut sort dirname wc comm ls head; do
    ln -s "$(command -v $tool)" "$folder/bin/$tool"
done
PATH=$folder/bin names 0 "layout layers" 'NOT checked: layout: clang-format 14 is not installed' \
    'NOT checked: tools/rooms.py layers: python3 is not installed'
PATH=$folder/bin CI=true names 1 "layout layers" 'NOT checked: layout:' \
    'NOT checked: tools/rooms.py layers:'

fresh # a program of the checks that fails is no tree without breaches
write tools/rooms.py 'raise SystemExit(1)'
names 1 layers 'tools/rooms.py: failed'

fresh # no checkout
rm -rf .git
GIT_CEILING_DIRECTORIES=$folder names 2 space 'git lists no sources here, so nothing can be checked'

[ "$failures" = 0 ] || exit 1
echo "tools/check names every breach"
