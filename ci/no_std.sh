#!/usr/bin/env bash
# Checks that tsumugi-core and tsumugi-gas need neither std nor alloc, and that tsumugi-ult
# without its feature `std` needs only alloc: each is built with a sysroot that contains
# nothing else, and a copy of it that uses std must fail to build. Then a program without
# std (tests/no_std) runs ULTs.
#
#   ci/no_std.sh [TARGET]     the host if not given; tests/no_std runs on the host only
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
target=${1:-$host}
work=$PWD/target/no_std
copy=$work/copy

# sysroot NAME CRATE...: makes a sysroot that contains only these crates.
sysroot() {
    local name=$1 crate
    shift
    rm -rf "${work:?}/$name"
    mkdir -p "$work/$name/lib/rustlib/$target/lib"
    for crate in "$@"; do
        cp "$(rustc --print sysroot)/lib/rustlib/$target/lib/lib$crate"-*.* \
            "$work/$name/lib/rustlib/$target/lib/"
    done
}

# build NAME ARGUMENT...: runs `cargo build` with that sysroot.
build() {
    local name=$1
    shift
    # With --target the flags do not apply to build scripts and procedural macros.
    RUSTFLAGS="--sysroot $work/$name" \
        cargo build --target "$target" --target-dir "$work/target-$name" "$@"
}

# leaks_are_refused NAME PACKAGE FOLDER MEMBERS ARGUMENT...: builds a copy of the crate as
# it is, and again with `extern crate std`, which must fail.
leaks_are_refused() {
    local name=$1 package=$2 folder=$3 members=$4
    shift 4
    rm -rf "$copy"
    mkdir -p "$copy/tests"
    awk '/^\[/ { keep = /^\[workspace/ } keep' Cargo.toml |
        sed -E "s/^(default-)?members = .*/\1members = [$members]/" >"$copy/Cargo.toml"
    cp Cargo.lock "$copy/"
    cp -r core ult gas "$copy/"
    cp -r tests/conformance "$copy/tests/"
    build "$name" --manifest-path "$copy/Cargo.toml" --package "$package" "$@"
    # Only this line is added; a feature `std` of the crate stays off.
    sed -i '0,/^#!\[\(no_std\|cfg_attr(not(feature = "std"), no_std)\)\]$/s//&\nextern crate std;/' \
        "$copy/$folder/src/lib.rs"
    grep -q '^extern crate std;$' "$copy/$folder/src/lib.rs"
    if build "$name" --manifest-path "$copy/Cargo.toml" --package "$package" "$@" \
        2>"$work/leak.log"; then
        echo "no_std: $package builds although it uses std: this check proves nothing" >&2
        exit 1
    fi
    if ! grep -q 'E0463' "$work/leak.log"; then
        cat "$work/leak.log" >&2
        echo "no_std: $package with a use of std fails, but not because std is missing" >&2
        exit 1
    fi
    echo "$package with a use of std is refused"
}

sysroot core core compiler_builtins rustc_std_workspace_core
build core --package tsumugi-core
echo "tsumugi-core builds with libcore alone"
leaks_are_refused core tsumugi-core core '"core"'
build core --package tsumugi-gas
echo "tsumugi-gas builds with libcore alone"
leaks_are_refused core tsumugi-gas gas '"core", "gas"'

sysroot alloc core alloc compiler_builtins rustc_std_workspace_core rustc_std_workspace_alloc
build alloc --package tsumugi-ult --no-default-features
echo "tsumugi-ult without std builds with libcore and liballoc alone"
leaks_are_refused alloc tsumugi-ult ult '"core", "ult"' --no-default-features

if [[ $target == "$host" ]]; then
    build alloc --manifest-path tests/no_std/Cargo.toml --locked
    timeout 60 "$work/target-alloc/$target/debug/no_std" | tee "$work/said"
    grep -q '^all is well$' "$work/said"
fi
