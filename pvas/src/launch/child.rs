//! One rank's process: its start, its end, and its output.

use super::lines::{Lines, Stream};
use super::losses::Losses;
use super::options::Launch;
use super::signals::FORWARDED;
use crate::config;
use crate::space::Files;
use crate::sys;
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use tsumugi_core::mem::Rank;

/// A rank's process.
#[derive(Debug)]
pub struct Child {
    rank: Rank,
    process: std::process::Child,
    /// `None` after the process has ended and was reaped.
    pidfd: Option<OwnedFd>,
    /// The pipe through which the rank learns which rank has died, in a job of
    /// several nodes.
    deaths: Option<PipeWriter>,
    /// The streams of its output, until the relay takes them.
    pub lines: Vec<Lines>,
}

impl Child {
    /// Starts `rank`. Its standard input is empty; only the first rank has the
    /// launcher's. `limit` is the limit of descriptors that the process gets.
    pub fn spawn(
        launch: &Launch,
        files: Option<&Files>,
        empty: &File,
        rank: Rank,
        mark: &str,
        losses: Option<&Losses>,
        limit: Option<libc::rlimit>,
    ) -> io::Result<Self> {
        let all = files.into_iter().flat_map(|files| files.files.iter().chain(&files.huge));
        let mut fds: Vec<RawFd> = all.map(AsRawFd::as_raw_fd).collect();
        let list: Vec<String> = fds.iter().map(RawFd::to_string).collect();
        let (told, deaths) = match launch.part {
            Some(_) => Some(io::pipe()?).unzip(),
            None => (None, None),
        };
        let mut command = Command::new(&launch.program);
        command
            .args(&launch.args)
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .env(config::RANK, rank.0.to_string())
            .env(config::SIZE, launch.size.to_string())
            .env(config::JOB, mark)
            .stdin(empty.try_clone()?);
        if let Some(files) = files {
            command
                .env(config::FDS, list.join(","))
                .env(config::SHAPE, files.shape.to_text())
                .envs(files.policy.variables());
            if rank == Rank(0) {
                command.stdin(Stdio::inherit());
            }
        }
        if let Some(told) = &told {
            command.env(config::DEATHS, told.as_raw_fd().to_string());
            fds.push(told.as_raw_fd());
        }
        if let Some(losses) = losses {
            let fd = losses.writer().as_raw_fd();
            command.env(config::LOSSES, fd.to_string());
            fds.push(fd);
        }
        // The only rank of a job may use the terminal directly.
        if launch.label || launch.size > 1 {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let launcher = std::process::id();
        // SAFETY: only system calls run between fork and exec.
        unsafe {
            command.pre_exec(move || {
                if !sys::die_with_parent(launcher)? {
                    return Err(io::Error::from_raw_os_error(libc::ESRCH));
                }
                sys::reset_signals(&FORWARDED);
                limit.as_ref().map(sys::set_descriptors);
                fds.iter().try_for_each(|fd| sys::keep_across_exec(*fd))
            });
        }
        let mut process = command.spawn()?;
        let out = process.stdout.take().map(|out| (out.into(), Stream::Out));
        let err = process.stderr.take().map(|err| (err.into(), Stream::Err));
        let lines = out.into_iter().chain(err).map(|(fd, stream)| {
            let lines = Lines::new(fd, stream, Some(rank));
            if launch.label { lines.labelled() } else { lines }
        });
        let lines = lines.collect();
        match sys::pidfd(process.id()) {
            Ok(pidfd) => Ok(Self { rank, process, pidfd: Some(pidfd), deaths, lines }),
            Err(error) => {
                process.kill()?;
                process.wait()?;
                Err(error)
            }
        }
    }

    /// The rank of this process.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// A descriptor that is readable when the process has ended; `None` after that
    /// was seen.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Whether the process has ended and was reaped.
    pub fn has_ended(&self) -> bool {
        self.pidfd.is_none()
    }

    /// The exit status, returned once, when the process has ended.
    pub fn poll_end(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.has_ended() {
            return Ok(None);
        }
        let status = self.process.try_wait()?;
        if status.is_some() {
            self.pidfd = None;
        }
        Ok(status)
    }

    /// Reports to the rank, once, that a rank of the job has died.
    pub fn tell(&mut self, dead: Rank) {
        if let Some(mut deaths) = self.deaths.take() {
            // A word fits into an empty pipe; if the process has ended, the write
            // fails, and the report is not needed.
            let _ = deaths.write_all(&dead.0.to_le_bytes());
        }
    }

    /// Sends a signal; a process that has ended meanwhile needs none.
    pub fn signal(&self, signal: i32) {
        if let Some(pidfd) = self.pidfd() {
            let _ = sys::send_signal(pidfd, signal);
        }
    }

    /// Kills the process, if it still runs, and waits for its end.
    pub fn kill_and_reap(&mut self) {
        if !self.has_ended() {
            self.signal(libc::SIGKILL);
            let _ = self.process.wait();
            self.pidfd = None;
        }
    }
}
