//! The measurements of a report: each is another benchmark of this command, run as a child,
//! which leaves its rows in a file.
//!
//! ```text
//!  bench figures ─► tsumugi bench gas --json rows/pages.json   ─► rows/pages.json
//!                   its output ─► rows/pages.log                  rows/pages.done: its command
//! ```
//!
//! A command that has ended once, with rows for each of the figures, is not repeated in the same
//! folder. A file of a measurement that was killed has the rows that it had.

use crate::args::FiguresArgs;
use crate::bench::row::{self, Row};
use crate::failure::Failure;
use crate::job;
use crate::progress::ProgressLine;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A benchmark.
#[derive(Debug)]
pub struct Measurement {
    /// The name of its files.
    pub name: &'static str,
    /// The words after `tsumugi bench`.
    pub words: &'static [&'static str],
    /// The option with the peers that it measures.
    pub peers: Peers,
    /// About how long it takes on two cores, quick and long, in seconds.
    pub seconds: [u64; 2],
}

/// The peers of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    None,
    Message,
    Lock,
}

impl Measurement {
    /// The words of the command after the name of the executable.
    pub fn command(&self, args: &FiguresArgs) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["bench".into()];
        words.extend(self.words.iter().map(Into::into));
        if args.quick {
            words.push("--quick".into());
        }
        if let Some(ops) = args.ops {
            words.extend(["--ops".into(), ops.to_string().into()]);
        }
        let peers = match self.peers {
            Peers::None => &[][..],
            Peers::Message => &args.peer,
            Peers::Lock => &args.lock_peer,
        };
        words.extend(peers.iter().flat_map(|peer| ["--peer".into(), peer.into()]));
        words.extend(["--json".into(), self.file(args, "json").into()]);
        words
    }

    /// About how many seconds it takes.
    pub fn planned(&self, args: &FiguresArgs) -> u64 {
        let [quick, long] = self.seconds;
        if args.quick { quick } else { long }
    }

    /// Whether the command has ended once in this folder, with all rows.
    pub fn is_done(&self, args: &FiguresArgs) -> bool {
        fs::read_to_string(self.file(args, "done"))
            .is_ok_and(|done| done == line(&self.command(args)))
    }

    /// Runs the command, and shows the time that it has taken.
    pub fn run(&self, args: &FiguresArgs, progress: &ProgressLine) -> Result<(), Failure> {
        let words = self.command(args);
        let log_path = self.file(args, "log");
        let log = File::create(&log_path).map_err(|error| Failure::write(&log_path, &error))?;
        let failed = |error: std::io::Error| Failure::Failed(format!("bench figures: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(&words).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(failed)?).stderr(log);
        job::end_with_us(&mut command, libc::SIGTERM);
        let begin = Instant::now();
        let mut child = command.spawn().map_err(failed)?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            progress.at(begin.elapsed().as_secs());
            thread::sleep(LOOK);
        };
        if let Some(why) = failure(status, &log_path) {
            return Err(Failure::Failed(format!("{}: {why}", line(&words))));
        }
        Ok(())
    }

    /// The command is not repeated in this folder.
    pub fn keep(&self, args: &FiguresArgs) -> Result<(), Failure> {
        let done = self.file(args, "done");
        let written = fs::write(&done, line(&self.command(args)));
        written.map_err(|error| Failure::write(&done, &error))
    }

    /// The rows that are there.
    pub fn rows(&self, args: &FiguresArgs) -> Vec<Row> {
        fs::read_to_string(self.file(args, "json"))
            .map_or_else(|_| Vec::new(), |text| of_lines(&text))
    }

    fn file(&self, args: &FiguresArgs, end: &str) -> PathBuf {
        args.folder.join("rows").join(self.name).with_extension(end)
    }
}

/// A command as a line.
pub fn line(words: &[OsString]) -> String {
    let words = words.iter().map(|word| word.to_string_lossy());
    format!("tsumugi {}", words.collect::<Vec<_>>().join(" "))
}

/// Why a command has failed, with the last line that it has written.
fn failure(status: ExitStatus, log: &Path) -> Option<String> {
    if status.success() {
        return None;
    }
    let said = fs::read_to_string(log).unwrap_or_default();
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
    Some(format!("{status}; its last line, of {}: {last}", log.display()))
}

/// The rows of an array that has a row in each line, and perhaps no end.
fn of_lines(text: &str) -> Vec<Row> {
    let rows = text.lines().map(|line| line.trim_end_matches(','));
    rows.filter_map(|row| row::of_json(&format!("[{row}]")).ok()).flatten().collect()
}

const LOOK: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::row::tests::row;

    #[test]
    fn an_array_without_an_end_has_its_rows() {
        let rows = [row("tsumugi", "get8", 3.0), row("bare", "get8", 1.0)];
        let whole = format!("[\n{},\n{}\n]\n", row::json(&rows[0]), row::json(&rows[1]));
        assert_eq!(of_lines(&whole), rows);
        let broken = &whole[..whole.len() - 30];
        assert_eq!(of_lines(broken), rows[..1]);
        assert!(of_lines("[\n]\n").is_empty() && of_lines("").is_empty());
    }
}
