#!/usr/bin/env bash
# Checks all packages with the Rust compiler of Debian 12's security archive (`rustc-web`), and
# builds the README's program with it and runs it. The packages are unpacked under
# target/debian, so the compiler of the system stays; cargo is the system's. By hand: it needs Debian 12, root (for
# `apt-get update`), and six minutes on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
grep -q '^VERSION_ID="12"' /etc/os-release || {
    echo "debian: this system is not Debian 12" >&2
    exit 1
}
root=$PWD/target/debian
# An older version's libraries must not be found.
rm -rf "$root/packages" "$root/usr"
mkdir -p "$root/packages"
cd "$root/packages"
apt-get update -qq
version=$(apt-cache show --no-all-versions rustc-web | sed -n 's/^Version: \([0-9]*\.[0-9]*\).*/\1/p')
names=(rustc-web libstd-rust-web-dev "libstd-rust-web-$version")
llvm=$(apt-cache depends "libstd-rust-web-$version" | sed -n 's/.*Depends: \(libllvm.*\)/\1/p')
apt-get download -qq -o APT::Sandbox::User=root "${names[@]}" "$llvm"
for package in *.deb; do
    dpkg-deb --extract "$package" "$root"
done
cd ../../..
LD_LIBRARY_PATH=$root/usr/lib/$(uname -m)-linux-gnu
RUSTC=$root/usr/bin/rustc
export LD_LIBRARY_PATH RUSTC CARGO_TARGET_DIR=target/debian/build
"$RUSTC" --version
cargo check --locked --workspace
cargo build --locked --package tsumugi --package tsumugi-cli --example hello --bins
target/debian/build/debug/tsumugi run -n 3 target/debian/build/debug/examples/hello
