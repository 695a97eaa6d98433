//! Builds with all mutants in them. Mutants that do not compile are found by the errors
//! of rustc, and dropped.

use crate::draw::Drawn;
use crate::find::Source;
use crate::tree::{DOOR, write_if_new};
use crate::weave::{SWITCH, Woven, weave};
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use syn::spanned::Spanned;
use syn::visit::Visit;

/// A way to build, and its tests.
#[derive(Debug)]
pub struct Build {
    packages: Vec<&'static str>,
    /// Arguments of cargo beside the packages.
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    /// The environment variables of the tests.
    pub test_env: &'static [(&'static str, &'static str)],
    folder: &'static str,
}

/// A binary of tests.
#[derive(Debug, Clone)]
pub struct Binary {
    pub name: String,
    pub path: PathBuf,
    /// The folder in which cargo would run it.
    pub folder: PathBuf,
    pub env: &'static [(&'static str, &'static str)],
}

/// The packages whose tests are run for mutants in a folder. The facade's tests have ranks
/// and a network; they take longest, and only some folders need them.
const TESTED_BY: &[(&str, &[&str])] = &[
    ("core/src/", &["tsumugi-core"]),
    ("core/src/am/", &["tsumugi"]),
    ("core/src/completion/", &["tsumugi"]),
    ("gas/src/", &["tsumugi-gas"]),
    ("ult/src/", &["tsumugi-ult"]),
    ("backends/src/", &["tsumugi-backends"]),
    ("pvas/src/", &["tsumugi-pvas"]),
    ("runtime/src/", &["tsumugi-runtime", "tsumugi"]),
    ("src/", &["tsumugi"]),
    ("acp/src/", &["tsumugi-foreign"]),
    ("capi/src/", &["tsumugi-capi", "tsumugi-foreign"]),
];

/// Tests that are not run: they build other programs, read sources, or check models (for
/// which there is `--loom`).
const LEFT_OUT: &[&str] =
    &["readme", "docs", "layers", "no_alloc", "loom", "shuttle", "asan", "verbs"];

/// The builds for these files.
pub fn builds(files: &[String], loom: bool) -> Vec<Build> {
    let mut packages = BTreeSet::new();
    for (folder, testers) in TESTED_BY {
        if files.iter().any(|file| file.starts_with(folder)) {
            packages.extend(testers.iter().copied());
        }
    }
    let checked = [
        ("tsumugi-core", &[("LOOM_MAX_PREEMPTIONS", "3"), ("LOOM_LOG", "0")]),
        ("tsumugi-ult", &[("LOOM_MAX_PREEMPTIONS", "2"), ("LOOM_LOG", "0")]),
        ("tsumugi-gas", &[("LOOM_MAX_PREEMPTIONS", "3"), ("LOOM_LOG", "0")]),
    ];
    let models: Vec<Build> = checked
        .iter()
        .filter(|(package, _)| loom && packages.contains(package))
        .map(|(package, test_env)| Build {
            packages: vec![*package],
            args: &["--release", "--test", "loom"],
            env: &[("RUSTFLAGS", "--cap-lints warn --cfg tsumugi_loom")],
            test_env: *test_env,
            folder: "build-loom",
        })
        .collect();
    let ordinary = Build {
        packages: packages.into_iter().collect(),
        args: &["--lib", "--tests"],
        env: &[
            ("RUSTFLAGS", "--cap-lints warn"),
            ("CARGO_PROFILE_DEV_OPT_LEVEL", "1"),
            ("CARGO_PROFILE_DEV_DEBUG", "line-tables-only"),
        ],
        test_env: &[],
        folder: "build",
    };
    std::iter::once(ordinary).chain(models).collect()
}

/// Weaves the mutants into the sources and checks these, until all remaining mutants
/// compile. Returns the numbers of the dropped ones, which are also stored in `state`.
pub fn drop_ill_typed(
    (root, tree): (&Path, &Path),
    state: &Path,
    sources: &[Source],
    drawn: &[Drawn],
    builds: &[Build],
) -> Result<BTreeSet<u32>, String> {
    let list = state.join("dropped");
    let known = fs::read_to_string(&list);
    let mut dropped: BTreeSet<u32> =
        known.as_deref().unwrap_or_default().lines().filter_map(|line| line.parse().ok()).collect();
    let text = fs::read_to_string(root.join(DOOR)).map_err(|error| error.to_string())?;
    write_if_new(&tree.join(DOOR), (text + SWITCH).as_bytes())?;
    const ROUNDS: usize = 20;
    for _ in 0..ROUNDS {
        let woven: Vec<Woven> = sources
            .iter()
            .enumerate()
            .map(|(index, source)| weave(index, source, drawn, &dropped))
            .collect();
        for (source, woven) in sources.iter().zip(&woven) {
            write_if_new(&tree.join(&source.file), woven.text.as_bytes())?;
        }
        if known.is_ok() {
            return Ok(dropped);
        }
        let mut bad = BTreeSet::new();
        for build in builds {
            for error in errors(tree, build)? {
                let guilty = guilty(&error, sources, &woven, drawn);
                if guilty.is_empty() {
                    return Err(format!("an error that no mutant causes:\n{}", error.said));
                }
                bad.extend(guilty);
            }
        }
        if bad.is_empty() {
            let lines: Vec<String> = dropped.iter().map(u32::to_string).collect();
            fs::write(list, lines.join("\n")).map_err(|error| error.to_string())?;
            println!("mutants: {} do not compile", dropped.len());
            return Ok(dropped);
        }
        dropped.extend(bad);
    }
    Err(format!("some mutant does not compile after {ROUNDS} rounds"))
}

struct Error {
    said: String,
    places: Vec<(String, Range<usize>)>,
}

/// The mutants that may cause an error: those of the smallest places at which the error
/// points. If there are none, the deleted statements of the function around the error, or
/// else all mutants of that function.
fn guilty(error: &Error, sources: &[Source], woven: &[Woven], drawn: &[Drawn]) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for (file, at) in &error.places {
        let Some(index) = sources.iter().position(|source| source.file == *file) else { continue };
        let holds = |range: &Range<usize>| range.start <= at.start && at.end <= range.end;
        let ranges = &woven[index].ranges;
        let least = ranges.iter().filter(|(_, range)| holds(range)).map(|(_, range)| range.len());
        if let Some(least) = least.min() {
            let of_it = ranges.iter().filter(|(_, range)| holds(range) && range.len() == least);
            found.extend(of_it.map(|(id, _)| *id));
            continue;
        }
        let Some(function) = function_around(&woven[index].text, at) else { continue };
        let inside =
            |range: &Range<usize>| function.start <= range.start && range.end <= function.end;
        let own = ranges.iter().filter(|(_, range)| inside(range)).map(|(id, _)| *id);
        let own: BTreeSet<u32> = own.collect();
        let stays = |id: &&u32| drawn[**id as usize].what.starts_with("deleted: ");
        let stays: BTreeSet<u32> = own.iter().filter(stays).copied().collect();
        found.extend(if stays.is_empty() { own } else { stays });
    }
    found
}

/// The bytes of the innermost function that contains the bytes `at`.
fn function_around(text: &str, at: &Range<usize>) -> Option<Range<usize>> {
    struct Functions(Vec<Range<usize>>);
    impl<'ast> Visit<'ast> for Functions {
        fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
            self.0.push(item.span().byte_range());
            syn::visit::visit_item_fn(self, item);
        }
        fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
            self.0.push(item.span().byte_range());
            syn::visit::visit_impl_item_fn(self, item);
        }
        fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
            self.0.push(item.span().byte_range());
            syn::visit::visit_trait_item_fn(self, item);
        }
    }
    let mut functions = Functions(Vec::new());
    functions.visit_file(&syn::parse_file(text).ok()?);
    let around = functions.0.into_iter().filter(|it| it.start <= at.start && at.end <= it.end);
    around.min_by_key(Range::len)
}

fn cargo(tree: &Path, build: &Build, first: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(first).current_dir(tree).args(build.args);
    for package in &build.packages {
        command.args(["--package", package]);
    }
    command.args(["--message-format", "json"]);
    command.env("CARGO_TARGET_DIR", tree.join("..").join(build.folder));
    command.envs(build.env.iter().copied()).stderr(Stdio::null());
    command
}

fn messages(mut command: Command) -> Result<(bool, Vec<serde_json::Value>), String> {
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let values = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
    Ok((output.status.success(), values))
}

fn errors(tree: &Path, build: &Build) -> Result<Vec<Error>, String> {
    let mut command = cargo(tree, build, &["check"]);
    command.arg("--keep-going");
    let (good, messages) = messages(command)?;
    let mut errors = Vec::new();
    for value in messages.iter().filter(|value| value["reason"] == "compiler-message") {
        let message = &value["message"];
        if message["level"] != "error" || message["spans"].as_array().is_none_or(Vec::is_empty) {
            continue;
        }
        let spans = message["spans"].as_array().into_iter().flatten();
        let places = spans.filter(|span| span["is_primary"] == true).map(|span| {
            let byte = |name: &str| span[name].as_u64().unwrap_or_default() as usize;
            let file = span["file_name"].as_str().unwrap_or_default().to_owned();
            (file, byte("byte_start")..byte("byte_end"))
        });
        let said = message["rendered"].as_str().unwrap_or_default().to_owned();
        errors.push(Error { said, places: places.collect() });
    }
    if !good && errors.is_empty() {
        return Err(format!("cargo check of {:?} fails without an error message", build.packages));
    }
    Ok(errors)
}

/// All binaries of tests.
pub fn tests(tree: &Path, builds: &[Build]) -> Result<Vec<Binary>, String> {
    let mut binaries = Vec::new();
    for build in builds {
        let (good, messages) = messages(cargo(tree, build, &["test", "--no-run"]))?;
        if !good {
            let said: Vec<&str> =
                messages.iter().filter_map(|value| value["message"]["rendered"].as_str()).collect();
            return Err(format!("the tests do not build:\n{}", said.join("\n")));
        }
        for value in messages.iter().filter(|value| value["profile"]["test"] == true) {
            let (Some(path), Some(name)) =
                (value["executable"].as_str(), value["target"]["name"].as_str())
            else {
                continue;
            };
            let manifest = PathBuf::from(value["manifest_path"].as_str().unwrap_or_default());
            let folder = manifest.parent().expect("a manifest lies in a folder").to_owned();
            if build.test_env.is_empty() && LEFT_OUT.contains(&name) {
                continue;
            }
            let package = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let package = if folder == tree { "facade".to_owned() } else { package };
            let name = format!("{package}:{name}");
            binaries.push(Binary { name, path: PathBuf::from(path), folder, env: build.test_env });
        }
    }
    Ok(binaries)
}
