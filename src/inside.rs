//! What a rank shows of itself to whoever looks from outside: a report of all
//! its ULTs when a signal comes, and a picture of what ran when.
//!
//! ```text
//! $ TSUMUGI_REPORT=usr2 TSUMUGI_TRACE=traces tsumugi run -n 4 PROGRAM &
//! $ kill -USR2 $!        all ranks write to their standard error: each ULT,
//!                        where it sleeps, for how long, its backtrace
//! $ ls traces            at the end: rank-0.json … rank-3.json, for Perfetto
//! ```
//!
//! A report costs nothing before it is asked for; a trace writes 32 bytes per
//! event and keeps the last ones of each worker. Of several ranks in one process
//! the first has the signal.

use crate::{Error, Rank};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use tsumugi_ult::Spawner;
use tsumugi_ult::inside::{Recording, ReportOn, Trace};

/// What is to be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// The signal that asks for a report.
    pub report: Option<i32>,
    /// The folder of traces.
    pub trace: Option<PathBuf>,
}

/// A rank that shows it.
pub(crate) struct Showing {
    _report: Option<ReportOn>,
    trace: Option<(Recording, PathBuf)>,
}

impl Inside {
    /// From now on, until [`Showing::end`].
    ///
    /// # Errors
    ///
    /// There is no such folder, and it cannot be made; or the system's.
    pub(crate) fn show(&self, rank: Rank, spawner: &Spawner) -> Result<Showing, Error> {
        let trace = self.trace.as_ref().map(|folder| {
            let failed = |error| Error::program(format!("{TRACE}={}: {error}", folder.display()));
            fs::create_dir_all(folder).map_err(failed)?;
            let recording = spawner.trace(EVENTS).expect("nobody records before the program");
            Ok::<_, Error>((recording, folder.join(format!("rank-{}.json", rank.0))))
        });
        let trace = trace.transpose()?;
        let report = self.report.and_then(|signal| {
            let show = move |text| eprintln!("rank {} reports:\n{text}", rank.0);
            match spawner.report_on(signal, show) {
                // Another rank of this process has it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                on => Some(on.map_err(|error| Error::program(format!("{REPORT}: {error}")))),
            }
        });
        Ok(Showing { _report: report.transpose()?, trace })
    }
}

impl Showing {
    /// The program has ended: writes the trace. What cannot be written is said;
    /// the job is none the worse.
    pub(crate) fn end(self) {
        if let Some((recording, path)) = self.trace {
            let trace = recording.stop();
            if let Err(error) = write(&trace, &path) {
                eprintln!("{TRACE}: {}: {error}", path.display());
            } else if trace.lost() > 0 {
                let lost = trace.lost();
                eprintln!("{}: {lost} older events did not fit", path.display());
            }
        }
    }
}

fn write(trace: &Trace, path: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    trace.write_chrome(&mut file)?;
    io::Write::flush(&mut file)
}

/// The variable of [`Inside::report`].
pub const REPORT: &str = "TSUMUGI_REPORT";
/// The variable of [`Inside::trace`].
pub const TRACE: &str = "TSUMUGI_TRACE";
/// What [`REPORT`] may hold: signals that mean nothing else.
pub(crate) const REPORTS: [(&str, i32); 2] = [("usr1", libc::SIGUSR1), ("usr2", libc::SIGUSR2)];
/// Of each worker: 2 MiB.
const EVENTS: usize = 1 << 16;
