//! Runs of tests: each test once without a mutant, to find which mutants it reaches, and
//! then, for each mutant, the tests that reach it.

use crate::Asked;
use crate::compile::Binary;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A test that passes without a mutant.
#[derive(Debug)]
pub struct Test {
    binary: usize,
    pub name: String,
    took: Duration,
    reaches: Vec<u32>,
}

/// The result of a mutant.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// This test has failed.
    Caught(String),
    /// This test has exceeded its time limit.
    Hung(String),
    /// So many tests have reached the mutant, and all have passed.
    Survived(usize),
    /// No test reaches the mutant.
    NotReached,
}

enum End {
    Passed,
    Failed,
    Late,
}

/// Runs all tests once without a mutant; returns those that pass, with the mutants that
/// each reaches. Tests with a result of an earlier run are not run again.
pub fn baseline(
    state: &Path,
    binaries: &[Binary],
    mutants: usize,
    asked: &Asked,
) -> Result<Vec<Test>, String> {
    let list = state.join("tests");
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for line in fs::read_to_string(&list).unwrap_or_default().lines() {
        if let Some((name, rest)) = line.split_once('\t') {
            known.insert(name.to_owned(), rest.to_owned());
        }
    }
    let all: Vec<(usize, String, String)> = (0..binaries.len())
        .flat_map(|index| {
            let binary = &binaries[index];
            let full = |name: String| (index, format!("{}::{name}", binary.name), name);
            names(binary).into_iter().map(full).collect::<Vec<_>>()
        })
        .collect();
    let open: Vec<_> = all.iter().filter(|(_, full, _)| !known.contains_key(full)).collect();
    let log = Mutex::new((append(&list)?, known));
    side_by_side(&open, |thread, (index, full, name)| {
        if asked.until.is_some_and(|until| Instant::now() > until) {
            return Err("the time is up: the next run continues here".to_owned());
        }
        let reached = state.join(format!("reached-{thread}"));
        fs::write(&reached, vec![0; 1 << 16]).map_err(|error| error.to_string())?;
        let begin = Instant::now();
        let end = run(&binaries[*index], name, None, Some(&reached), asked.test_limit);
        let word = match end {
            End::Passed => "passes",
            End::Failed => "fails",
            End::Late => "late",
        };
        let bytes = fs::read(&reached).map_err(|error| error.to_string())?;
        let ids: Vec<String> =
            (0..mutants).filter(|id| bytes[*id] != 0).map(|id| id.to_string()).collect();
        let rest = format!("{word}\t{}\t{}", begin.elapsed().as_millis(), ids.join(" "));
        let mut log = log.lock().expect("no thread panics with the log");
        writeln!(log.0, "{full}\t{rest}").map_err(|error| error.to_string())?;
        if !matches!(end, End::Passed) {
            println!("mutants: {full} {word} without a mutant, and is left out");
        }
        log.1.insert(full.clone(), rest);
        Ok(())
    })?;
    let (_, known) = log.into_inner().expect("no thread panics with the log");
    let mut tests = Vec::new();
    for (index, full, _) in all {
        let parts: Vec<&str> = known[&full].split('\t').collect();
        let ["passes", took, ids] = parts[..] else { continue };
        let took = Duration::from_millis(took.parse().unwrap_or_default());
        let reaches = ids.split(' ').filter_map(|id| id.parse().ok()).collect();
        tests.push(Test { binary: index, name: full, took, reaches });
    }
    tests.sort_by_key(|test| test.took);
    Ok(tests)
}

/// Judges each mutant. Mutants with a verdict of an earlier run are not judged again.
pub fn all(
    state: &Path,
    chosen: &[u32],
    binaries: &[Binary],
    tests: &[Test],
    asked: &Asked,
) -> Result<BTreeMap<u32, Verdict>, String> {
    let list = state.join("verdicts");
    let mut verdicts = BTreeMap::new();
    for line in fs::read_to_string(&list).unwrap_or_default().lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let [id, word, rest] = parts[..] else { continue };
        let verdict = match word {
            "caught" => Verdict::Caught(rest.to_owned()),
            "hung" => Verdict::Hung(rest.to_owned()),
            "survived" => Verdict::Survived(rest.parse().unwrap_or_default()),
            _ => Verdict::NotReached,
        };
        verdicts
            .insert(id.parse().map_err(|_| format!("{line:?} in {}", list.display()))?, verdict);
    }
    let open: Vec<u32> = chosen.iter().copied().filter(|id| !verdicts.contains_key(id)).collect();
    let log = Mutex::new((append(&list)?, verdicts));
    side_by_side(&open, |_, id| {
        if asked.until.is_some_and(|until| Instant::now() > until) {
            return Ok(());
        }
        let verdict = judge(*id, binaries, tests);
        let line = match &verdict {
            Verdict::Caught(by) => format!("caught\t{by}"),
            Verdict::Hung(by) => format!("hung\t{by}"),
            Verdict::Survived(count) => format!("survived\t{count}"),
            Verdict::NotReached => "unreached\t".to_owned(),
        };
        let mut log = log.lock().expect("no thread panics with the log");
        writeln!(log.0, "{id}\t{line}").map_err(|error| error.to_string())?;
        log.1.insert(*id, verdict);
        Ok(())
    })?;
    let (_, verdicts) = log.into_inner().expect("no thread panics with the log");
    Ok(verdicts)
}

fn judge(id: u32, binaries: &[Binary], tests: &[Test]) -> Verdict {
    let mut passed = 0;
    for test in tests.iter().filter(|test| test.reaches.contains(&id)) {
        let binary = &binaries[test.binary];
        let name = &test.name[binary.name.len() + 2..];
        // A generous limit, because a test is slow on a busy machine.
        let limit = Duration::from_secs(20).max(test.took * 6);
        match run(binary, name, Some(id), None, limit) {
            End::Passed => passed += 1,
            End::Failed => return Verdict::Caught(test.name.clone()),
            End::Late => return Verdict::Hung(test.name.clone()),
        }
    }
    if passed == 0 { Verdict::NotReached } else { Verdict::Survived(passed) }
}

/// Calls `of` with the number of a thread and each item, on a thread per core, as most
/// tests are one thread. Returns the first error.
fn side_by_side<T: Sync>(
    items: &[T],
    of: impl Fn(usize, &T) -> Result<(), String> + Sync,
) -> Result<(), String> {
    let next = AtomicUsize::new(0);
    let take = |thread: usize| {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            of(thread, item)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let take = &take;
        let threads = 0..thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = threads.map(|thread| scope.spawn(move || take(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a thread without a panic"))
    })
}

fn names(binary: &Binary) -> Vec<String> {
    let mut command = Command::new(&binary.path);
    command.args(["--list", "--format", "terse"]).current_dir(&binary.folder);
    let Ok(output) = command.stderr(Stdio::null()).output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

fn run(
    binary: &Binary,
    name: &str,
    on: Option<u32>,
    reached: Option<&Path>,
    limit: Duration,
) -> End {
    let mut command = Command::new(&binary.path);
    command.args(["--exact", name]).current_dir(&binary.folder).process_group(0);
    command.env("CARGO_MANIFEST_DIR", &binary.folder).env("RUST_BACKTRACE", "0");
    command.envs(binary.env.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(id) = on {
        command.env("TSUMUGI_TEST_SAMPLED", id.to_string());
    }
    if let Some(path) = reached {
        command.env("TSUMUGI_TEST_SAMPLED_REACHED", path);
    }
    let Ok(mut child) = command.spawn() else { return End::Failed };
    let late = Instant::now() + limit;
    let mut pause = Duration::from_micros(500);
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return End::Passed,
            Ok(Some(_)) | Err(_) => return End::Failed,
            Ok(None) => (),
        }
        if Instant::now() > late {
            // SAFETY: `kill` accesses no memory; the group is the child's, because the child
            // was not waited for.
            unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
            let _ = child.wait();
            return End::Late;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn append(path: &Path) -> Result<fs::File, String> {
    let opened = fs::OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(|error| format!("{}: {error}", path.display()))
}
