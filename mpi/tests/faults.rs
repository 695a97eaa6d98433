//! C programs with a mistake: what their users read, and how the job ends.
//!
//! Each function of a program of `tests/faults` is a mistake of its own. The comment above it says
//! for how many ranks it is, how the job ends, and the lines that are wanted (see `fault.h`).

mod built;

use built::{Built, each, sources};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn mistakes_are_reported_in_words_of_the_program() {
    let built = Built::new();
    let mut all = Vec::new();
    for source in sources("faults") {
        let program = built.compile(&source).unwrap_or_else(|reason| panic!("{reason}"));
        let text = fs::read_to_string(&source).unwrap();
        let mistakes = Mistake::all(&text);
        let listed = text.matches("FAULT(").count() - text.matches("RUN_FAULT(").count();
        assert_eq!(mistakes.len(), listed, "{}: a comment is not read", source.display());
        all.extend(mistakes.into_iter().map(|mistake| (program.clone(), mistake)));
    }
    assert!(all.len() > 50, "{} mistakes", all.len());
    let wrong = each(&all, |(program, mistake)| mistake.check(&built, program));
    assert!(wrong.is_empty(), "{wrong}");
}

/// One mistake: the function that makes it, and what is wanted then.
struct Mistake {
    name: String,
    ranks: String,
    /// The exit code of the job; `None`: it stands still.
    code: Option<i32>,
    /// Whether the checking mode finds it.
    is_checked: bool,
    lines: Vec<String>,
}

impl Mistake {
    /// The mistakes of a source: comments as
    /// `// 2 ranks, code 6, checked: rank 0: ... the first line` before functions.
    fn all(text: &str) -> Vec<Self> {
        let mut all = Vec::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let Some((head, first)) =
                line.strip_prefix("// ").and_then(|line| line.split_once(": "))
            else {
                continue;
            };
            let words: Vec<&str> = head.split(", ").collect();
            let code = words[1].strip_prefix("code ").map(|code| code.parse().unwrap());
            assert!(code.is_some() || words[1] == "stands still", "{line}");
            let mut wanted = vec![first.to_owned()];
            while let Some(line) = lines.next_if(|line| line.starts_with("//     ")) {
                wanted.push(line[7..].to_owned());
            }
            let function = lines.next().unwrap();
            let name = function.strip_prefix("static void ").and_then(|rest| rest.split_once('('));
            all.push(Self {
                name: name.unwrap_or_else(|| panic!("no function: {function}")).0.to_owned(),
                ranks: words[0].strip_suffix(" ranks").unwrap().to_owned(),
                code,
                is_checked: words.get(2) == Some(&"checked"),
                lines: wanted,
            });
        }
        all
    }

    fn check(&self, built: &Built, program: &Path) -> Result<(), String> {
        let mut command = Command::new(&built.command);
        command
            .args(["run", "--timeout", "60s", "-n", &self.ranks])
            .arg(program)
            .arg(&self.name)
            .env("TSUMUGI_MPI_CHECKS", if self.is_checked { "on" } else { "off" })
            // Ranks that hear of a death on a busy machine have time to say so.
            .env("TSUMUGI_GRACE_TIMEOUT", "10s")
            .env("RUST_BACKTRACE", "0")
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut job = command.spawn().unwrap();
        let mut missing: Vec<&String> = self.lines.iter().collect();
        let mut printed = String::new();
        for line in BufReader::new(job.stderr.take().unwrap()).lines() {
            let line = line.unwrap();
            missing.retain(|wanted| !fits(wanted, &line));
            printed += &(line + "\n");
            if missing.is_empty() && self.code.is_none() {
                // A job that stands still goes on; its ranks end with their launcher.
                job.kill().unwrap();
                break;
            }
        }
        let code = job.wait().unwrap().code();
        if missing.is_empty() && (self.code.is_none() || code == self.code) {
            return Ok(());
        }
        let program = program.file_name().unwrap().display();
        Err(format!(
            "{program} {}: exit code {code:?}, wanted {:?} and lines {missing:#?}, printed\n{printed}\n",
            self.name, self.code
        ))
    }
}

/// Whether a line is the wanted one, in which `...` stands for any text.
fn fits(wanted: &str, line: &str) -> bool {
    let mut parts = wanted.split("...");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    wanted.ends_with("...") || rest.is_empty()
}
