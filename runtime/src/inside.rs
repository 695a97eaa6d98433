//! A rank's views for an observer outside: a report of all its ULTs on a signal, and
//! a trace of what ran when.
//!
//! ```text
//! $ TSUMUGI_REPORT=usr2 TSUMUGI_TRACE=traces tsumugi run -n 4 PROGRAM &
//! # Later, when the job runs (a rank that does not handle the signal yet dies of it):
//! $ kill -USR2 $!        all ranks write to their standard error: each ULT,
//!                        where it sleeps, for how long, its backtrace; each
//!                        line begins with its rank, none is torn by another's
//! $ ls traces            at the end: rank-0.json … rank-3.json, for Perfetto
//! ```
//!
//! A report costs nothing before the signal comes; a trace writes 32 bytes per event
//! and keeps the last events of each worker. Of several ranks in one process the
//! first has the signal.

use crate::error::Error;
use crate::variable::{REPORT, TRACE};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::mem;
use std::path::{Path, PathBuf};
use tsumugi_core::mem::Rank;
use tsumugi_pvas::config::Choices;
use tsumugi_ult::Spawner;
use tsumugi_ult::inside::{Recording, ReportOn, Trace};

/// The views that are switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Inside {
    /// The signal that requests a report.
    pub report: Option<i32>,
    /// The folder of traces.
    pub trace: Option<PathBuf>,
}

/// The views of a rank that are active.
pub(crate) struct Showing {
    _report: Option<ReportOn>,
    trace: Option<(Recording, PathBuf)>,
}

impl Inside {
    /// Starts the views, until [`Showing::end`].
    ///
    /// # Errors
    ///
    /// The folder does not exist and cannot be made; or the system refuses the
    /// signal handler.
    pub(crate) fn show(&self, rank: Rank, spawner: &Spawner) -> Result<Showing, Error> {
        let trace = self.trace.as_ref().map(|folder| {
            let failed = |error| {
                let folder = folder.display();
                Error::program(format!("{TRACE}={folder}: the folder cannot be made: {error}"))
            };
            fs::create_dir_all(folder).map_err(failed)?;
            let recording = spawner.trace(EVENTS).expect("no trace is recorded before the program");
            Ok::<_, Error>((recording, folder.join(format!("rank-{}.json", rank.0))))
        });
        let trace = trace.transpose()?;
        let report = self.report.and_then(|signal| {
            let show = move |text: String| tell(rank, &text, &mut io::stderr().lock());
            match spawner.report_on(signal, show) {
                // Another rank of this process has the signal.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                on => Some(on.map_err(|error| {
                    Error::program(format!("{REPORT}: the signal cannot be handled: {error}"))
                })),
            }
        });
        Ok(Showing { _report: report.transpose()?, trace })
    }
}

impl Showing {
    /// Ends the views after the program, and writes the trace. A failure is printed,
    /// in one write because ranks share the output, and the job goes on.
    pub(crate) fn end(self) {
        if let Some((recording, path)) = self.trace {
            let trace = recording.stop();
            if let Err(error) = write(&trace, &path) {
                let line = format!("tsumugi: {}: cannot be written: {error}\n", path.display());
                eprint!("{line}");
            } else if trace.lost() > 0 {
                let lost = trace.lost();
                let path = path.display();
                let line = format!(
                    "tsumugi: {path}: {lost} older events are missing: a trace keeps the last \
                     {EVENTS} of each worker\n"
                );
                eprint!("{line}");
            }
        }
    }
}

/// Writes `text` to an output that ranks share: whole lines, each after its rank's
/// name, in writes that a pipe does not split. Errors of the output are ignored.
fn tell(rank: Rank, text: &str, to: &mut impl Write) {
    let mut piece = String::new();
    for line in text.lines() {
        let line = format!("rank {}: {line}\n", rank.0);
        if piece.len() + line.len() > WHOLE {
            let _ = to.write_all(mem::take(&mut piece).as_bytes());
        }
        piece += &line;
    }
    let _ = to.write_all(piece.as_bytes());
}

fn write(trace: &Trace, path: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    trace.write_chrome(&mut file)?;
    file.flush()
}

/// The values that [`REPORT`] may have: signals without another meaning.
pub const REPORTS: Choices<i32> = Choices::new(&["usr1", "usr2"], &[libc::SIGUSR1, libc::SIGUSR2]);
/// Events of each worker: 2 MiB.
const EVENTS: usize = 1 << 16;
/// The largest write that a pipe keeps whole: `PIPE_BUF`.
const WHOLE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps each write by itself.
    struct Writes(Vec<String>);

    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(String::from_utf8(bytes.to_vec()).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn reports_are_not_torn() {
        let text: String = (0..1_000).map(|line| format!("line {line}\n")).collect();
        let mut writes = Writes(Vec::new());
        tell(Rank(7), &text, &mut writes);
        assert!(writes.0.iter().all(|write| write.len() <= WHOLE && write.ends_with('\n')));
        let lines = writes.0.concat();
        assert!(lines.lines().all(|line| line.starts_with("rank 7: line ")));
        assert_eq!(lines.lines().count(), 1_000);
    }
}
