#!/usr/bin/env bash
# Installs the C library as a package does, and uses it from a folder outside of the source
# tree, by the lines of docs/c.md: pkg-config, CMake, the static library, C++, and
# libmyth.so.0. Then the installed library has the symbols of its list, with their versions,
# and no others.
#
# The build is that of target/, so it is short if another step has built there. Installs
# cmake and pkg-config if they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD

need() {
    command -v "$1" >/dev/null && return
    apt-get install -y -qq "$2" >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq "$2" >/dev/null; } ||
        { echo "adopt_c: $1 is missing and cannot be installed" >&2; exit 1; }
}
need pkg-config pkg-config
need cmake cmake
need make make

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# block LANGUAGE WORD: the block of docs/c.md in that language that contains the word.
block() {
    awk -v language="$1" -v word="$2" '
        /^```/ && !inside { inside = 1; wanted = $0 == "```" language; text = ""; next }
        /^```$/ { if (wanted && index(text, word)) { printf "%s", text; exit } inside = 0; next }
        inside { text = text $0 "\n" }
    ' "$here/docs/c.md"
}
# The lines of a block, of which there must be some.
lines() {
    local text
    text=$(block "$@")
    [[ -n $text ]] || { echo "adopt_c: docs/c.md has no block '$2'" >&2; exit 1; }
    printf '%s\n' "$text"
}

prefix=$work/prefix
export PREFIX=$prefix
eval "$(lines sh 'make install')"
test -x "$prefix/bin/tsumugi"

# From here on nothing knows where the sources are.
mkdir "$work/elsewhere"
cd "$work/elsewhere"
{
    printf '#include <stdio.h>\n#include <stdint.h>\n#include <tsumugi.h>\n\nint main(void)\n{\n'
    lines c 'tsumugi_start(&job)' | sed 's/^/    /'
    printf '    return 0;\n}\n'
} >program.c
lines cpp 'tsumugi::array' >program.cpp
export PATH=$prefix/bin:$PATH
# drew PROGRAM: runs it as three ranks; each must have drawn a number.
drew() {
    tsumugi run -n 3 "$1" >said
    [[ $(grep -cE '^[0-2] of 3 drew [0-2]$' said) == 3 ]] ||
        { echo "adopt_c: $1 said:" >&2; cat said >&2; exit 1; }
}

# is_static PROGRAM: fails if it needs the shared library.
is_static() {
    if readelf -d "$1" | grep -q libtsumugi; then
        echo "adopt_c: $1 needs the shared library" >&2
        exit 1
    fi
}

# pkg-config, shared and static.
eval "$(lines sh 'pkg-config --cflags')"
readelf -d program | grep -q 'NEEDED.*\[libtsumugi.so.0\]'
drew ./program
eval "$(lines sh 'pkg-config --static')"
is_static program-static
drew ./program-static

# C++.
eval "$(lines sh 'c++ ')"
[[ $(tsumugi run -n 3 ./program-cpp) == "3 ranks: the sum is 499500" ]]

# CMake.
mkdir cmake && cp program.c cmake
lines cmake 'find_package' >cmake/CMakeLists.txt
cmake -S cmake -B cmake/build -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build cmake/build >/dev/null
drew cmake/build/program
cmake -S cmake -B cmake/static -DCMAKE_PREFIX_PATH="$prefix" -DBUILD_SHARED_LIBS=OFF >/dev/null
cmake --build cmake/static >/dev/null
is_static cmake/static/program
drew cmake/static/program

# The symbols.
nm -D --defined-only "$prefix/lib/libtsumugi.so" | awk '$2 != "A" { print $3 }' | sort >found
sed -n 's/^    \([a-z][a-z0-9_]*\);$/\1@@TSUMUGI_0.1/p' "$here/capi/install/tsumugi.map" |
    sort >listed
diff listed found || { echo "adopt_c: the symbols are not those of the list" >&2; exit 1; }

# The library for programs of MassiveThreads, by its own header.
make --silent -C "$here" install-myth PREFIX="$prefix"
cat >threads.c <<'END'
#include <myth/myth.h>
static void *increment(void *arg) { return (char *)arg + 1; }
int main(void)
{
    void *result;
    if (myth_join(myth_create(increment, NULL), &result) != 0) return 1;
    return result == (void *)1 ? 0 : 2;
}
END
cc threads.c -o threads -I"$prefix/include" -L"$prefix/lib" -lmyth -Wl,-rpath,"$prefix/lib"
readelf -d threads | grep -q 'NEEDED.*\[libmyth.so.0\]'
./threads || { echo "adopt_c: a program with libmyth.so.0 returned $?" >&2; exit 1; }
# Each function of the header, which takes no part in the library's list of symbols.
grep -oE '\bmyth_[a-z0-9_]+ *\(' "$prefix/include/myth/myth.h" | tr -d ' (' | sort -u >declared
nm -D --defined-only "$prefix/lib/libmyth.so.0" | awk '{ print $3 }' | sort -u >found
[[ -z $(comm -23 declared found) ]] ||
    { echo "adopt_c: libmyth.so.0 has not:" >&2; comm -23 declared found >&2; exit 1; }

# Nothing is left behind.
make --silent -C "$here" uninstall uninstall-myth PREFIX="$prefix"
[[ -z $(find "$prefix" -type f -o -type l) ]]
echo "adopt_c: the installed library is found, linked and run from another folder"
