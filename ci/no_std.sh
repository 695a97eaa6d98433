#!/usr/bin/env bash
# tsumugi-core needs neither std nor alloc: it builds where there is only
# libcore, and would not if it used more.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
target=${1:-$host}
work=$PWD/target/no_std
sysroot=$work/sysroot
copy=$work/copy

# A sysroot that holds libcore and what the compiler itself needs.
rm -rf "$sysroot" "$copy"
lib=lib/rustlib/$target/lib
mkdir -p "$sysroot/$lib"
for crate in core compiler_builtins rustc_std_workspace_core; do
    cp "$(rustc --print sysroot)/$lib/lib$crate"-*.* "$sysroot/$lib/"
done

build() {
    # --target keeps the flags from what is built for the host.
    RUSTFLAGS="--sysroot $sysroot" \
        cargo build --package tsumugi-core --target "$target" --target-dir "$work/target" "$@"
}

build
echo "tsumugi-core builds with libcore alone"

# The same crate, once as it is and once with a leak.
mkdir -p "$copy/tests"
awk '/^\[/ { keep = /^\[workspace/ } keep' Cargo.toml |
    sed -E 's/^(default-)?members = .*/\1members = ["core"]/' >"$copy/Cargo.toml"
cp Cargo.lock "$copy/"
cp -r core "$copy/"
cp -r tests/conformance "$copy/tests/"
build --manifest-path "$copy/Cargo.toml"
sed -i 's/^#!\[no_std\]$/#![no_std]\nextern crate std;/' "$copy/core/src/lib.rs"
if build --manifest-path "$copy/Cargo.toml" 2>"$work/leak.log"; then
    echo "a crate that uses std was built: this check proves nothing" >&2
    exit 1
fi
if ! grep -q 'E0463' "$work/leak.log"; then
    cat "$work/leak.log" >&2
    echo "a crate that uses std failed, but not for the want of it" >&2
    exit 1
fi
echo "and a use of std is refused"
