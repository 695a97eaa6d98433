#!/usr/bin/env bash
# Packages every crate as `cargo publish` would, and checks the README's program against
# these packages: each file that a crate needs is in its package, and the program's lock file
# names only packages that a build compiles. Also checks the licences of everything that is
# built into a product or builds it: one of the alternatives must be in `allow` of deny.toml. (`cargo publish --workspace --dry-run` also
# compiles each package by itself, which takes minutes.)
set -euo pipefail
cd "$(dirname "$0")/.."

allowed=$(sed -n 's/^allow = \[\(.*\)\]$/\1/p' deny.toml | tr -d '",')
cargo tree --locked --workspace --edges normal,build --prefix none --format '{p}|{l}' |
    sed 's/ (\*)$//; s/ (.*|/|/; /^$/d' | sort -u | awk -F'|' -v allowed="$allowed" '
    # The licences without parentheses: each AND of one alternative must be allowed.
    function accepts(text,    choices, parts, i, j, fails) {
        gsub("/", " OR ", text)
        for (i = split(text, choices, " OR "); i > 0; i--) {
            fails = 0
            for (j = split(choices[i], parts, " AND "); j > 0; j--)
                if (!(parts[j] in good)) fails = 1
            if (!fails) return 1
        }
        return 0
    }
    BEGIN { for (i = split(allowed, names, " "); i > 0; i--) good[names[i]]; good["accepted"] }
    {
        text = $2
        while (match(text, /\([^()]*\)/)) {
            inner = accepts(substr(text, RSTART + 1, RLENGTH - 2)) ? "accepted" : "refused"
            text = substr(text, 1, RSTART - 1) inner substr(text, RSTART + RLENGTH)
        }
        if (!accepts(text)) { print "package: the licence of " $1 " is not accepted: " $2; bad = 1 }
    }
    END { if (NR < 30) { print "package: only " NR " licences were read"; bad = 1 } exit bad }' >&2

work=target/packages
rm -rf "$work"
mkdir -p "$work/user/src"
mapfile -t private < <(grep -l '^publish = false' tests/*/Cargo.toml benches/*/Cargo.toml |
    xargs awk -F'"' '/^\[workspace\]/ { nextfile } /^name = / { print $2; nextfile }')
cargo package --workspace "${private[@]/#/--exclude=}" --no-verify --allow-dirty --quiet \
    --target-dir "$work" 2> >(grep -v '^warning: ignoring' >&2)
for package in "$work"/package/*.crate; do
    tar -xzf "$package" -C "$work"
done

{
    printf '[package]\nname = "user"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n'
    printf '[dependencies]\ntsumugi = "0"\n[patch.crates-io]\n'
    for folder in "$work"/tsumugi*-[0-9]*; do
        name=$(basename "$folder")
        printf '%s = { path = "../%s" }\n' "${name%-*}" "$name"
    done
} >"$work/user/Cargo.toml"
sed -n '/^## A program$/,/^```$/ { /^```/d; /^## /d; p }' README.md >"$work/user/src/main.rs"
# The versions of this repository; cargo removes what the program does not need.
cp Cargo.lock "$work/user/"
cargo check --quiet --manifest-path "$work/user/Cargo.toml" --target-dir "$work/target"

names() { sort -u | grep -v '^user$'; }
sed -n '/^\[\[patch/,$d; s/^name = "\(.*\)"/\1/p' "$work/user/Cargo.lock" | names >"$work/locked"
cargo tree --quiet --manifest-path "$work/user/Cargo.toml" --edges normal,build --prefix none \
    --target all --format '{p}' | cut -d' ' -f1 | names >"$work/built"
if ! diff "$work/locked" "$work/built"; then
    echo "package: the lock file of a user names packages that no build compiles (<)" >&2
    exit 1
fi
echo "packages: $(find "$work/package" -maxdepth 1 -name '*.crate' | wc -l); in the lock file of a user: $(wc -l <"$work/locked")"
