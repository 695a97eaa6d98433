//! Ranks of one system, started once, which receive commands batch by batch.
//!
//! ```text
//!  driver ── FOLDER/0, FOLDER/1, ... ──► ranks      latency bytes=8 repeat=5
//!         ◄── FOLDER/answer ──────────── rank 0     ns 91.2 ... end
//! ```
//!
//! Between commands the ranks sleep in the kernel, so that teams of several systems
//! can exist at once and take turns, without disturbing each other.

use crate::failure::Failure;
use crate::job;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tsumugi::pvas::launch::Guardian;

/// How the ranks of a system are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// The name of the system in its rows.
    pub name: String,
    /// Program and arguments; `N` stands for the number of ranks and `FOLDER` for
    /// the folder of the pipes.
    pub words: Vec<String>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
}

/// The answer of rank 0 at the end of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TeamAnswer {
    /// Nanoseconds of each repetition.
    pub ns: Vec<f64>,
    /// Other numbers, with their names.
    pub counts: Vec<(String, u64)>,
}

/// Ranks that wait for commands.
#[derive(Debug)]
pub struct Team {
    /// The name of the system.
    pub name: String,
    folder: PathBuf,
    commands: Vec<File>,
    answers: File,
    /// The bytes received that are no whole line yet.
    text: String,
    child: Child,
}

impl System {
    /// Parses `NAME=COMMAND`, a command of words separated by blanks.
    pub fn parse(text: &str) -> Result<Self, String> {
        let usage = || format!("--peer '{text}': expected NAME=COMMAND");
        let (name, command) = text.split_once('=').ok_or_else(usage)?;
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        match (name, words.as_slice()) {
            ("", _) | (_, []) => Err(usage()),
            _ => Ok(Self { name: name.to_owned(), words, env: Vec::new() }),
        }
    }

    /// Starts `ranks` ranks, with their pipes in the guardian's folder.
    pub fn start(&self, ranks: u32, guardian: &Guardian) -> Result<Team, Failure> {
        let folder = fresh_folder(guardian).map_err(|error| self.failure(&error.to_string()))?;
        let pipes = Pipes::make(&folder, ranks);
        let (commands, answers) = match pipes {
            Ok(Pipes { commands, answers }) => (commands, answers),
            Err(error) => {
                let _ = fs::remove_dir_all(&folder);
                return Err(self.failure(&error.to_string()));
            }
        };
        let word = |word: &String| match word.as_str() {
            "N" => ranks.to_string(),
            "FOLDER" => folder.display().to_string(),
            other => other.to_owned(),
        };
        let words: Vec<String> = self.words.iter().map(word).collect();
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .envs([guardian.variable()])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        // If the driver were killed, a launcher would wait for ever for its ranks,
        // which wait for commands.
        job::end_with_us(&mut command, libc::SIGKILL);
        match command.spawn() {
            Ok(child) => {
                let (name, text) = (self.name.clone(), String::new());
                Ok(Team { name, folder, commands, answers, text, child })
            }
            Err(error) => {
                let _ = fs::remove_dir_all(&folder);
                Err(self.failure(&format!("{} cannot be started: {error}", words[0])))
            }
        }
    }

    fn failure(&self, why: &str) -> Failure {
        Failure::Failed(format!("{}: {why}", self.name))
    }
}

impl Team {
    /// Sends a command to all ranks; returns the answer of rank 0.
    ///
    /// # Errors
    ///
    /// If the ranks have ended, or have not answered within `limit`.
    pub fn ask(&mut self, command: &str, limit: Duration) -> Result<TeamAnswer, Failure> {
        for pipe in &mut self.commands {
            let written = pipe.write_all(format!("{command}\n").as_bytes());
            if let Err(error) = written {
                return Err(self.failure(&format!("a command cannot be sent: {error}")));
            }
        }
        let end = Instant::now() + limit;
        let mut answer = TeamAnswer::default();
        loop {
            while let Some((line, rest)) = self.text.split_once('\n') {
                let (line, rest) = (line.to_owned(), rest.to_owned());
                self.text = rest;
                if line == "end" {
                    return Ok(answer);
                }
                answer
                    .take(&line)
                    .ok_or_else(|| self.failure(&format!("the answer '{line}' is not valid")))?;
            }
            self.read_more(end, command)?;
        }
    }

    fn read_more(&mut self, end: Instant, command: &str) -> Result<(), Failure> {
        let mut bytes = [0; 4096];
        match self.answers.read(&mut bytes) {
            Ok(len) if len > 0 => {
                self.text += &String::from_utf8_lossy(&bytes[..len]);
                return Ok(());
            }
            Err(error) if error.kind() != ErrorKind::WouldBlock => {
                return Err(self.failure(&error.to_string()));
            }
            _ => {}
        }
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(self.failure(&format!("the ranks have ended: {status}")));
        }
        if Instant::now() >= end {
            return Err(self.failure(&format!("no answer to '{command}' within the time limit")));
        }
        // The driver sleeps, so that both cores are free for the ranks.
        let (fd, events) = (self.answers.as_raw_fd(), libc::POLLIN);
        let mut polled = libc::pollfd { fd, events, revents: 0 };
        // SAFETY: the call writes only to `polled`, one descriptor, which outlives
        // it.
        unsafe { libc::poll(&mut polled, 1, LOOK_AGAIN_MS) };
        Ok(())
    }

    fn failure(&self, why: &str) -> Failure {
        Failure::Failed(format!("{}: {why}", self.name))
    }
}

impl TeamAnswer {
    /// Takes one line of the answer; `None` if the line is invalid.
    fn take(&mut self, line: &str) -> Option<()> {
        let (name, value) = line.split_once(' ')?;
        match name {
            "ns" => self.ns.push(value.parse().ok()?),
            name => self.counts.push((name.to_owned(), value.parse().ok()?)),
        }
        Some(())
    }
}

impl Team {
    /// Ends the ranks, so that the next team can have their CPUs.
    pub fn end(&mut self) {
        // The ranks read the end of their pipes, and end.
        self.commands.clear();
        let end = Instant::now() + Duration::from_secs(3);
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(5));
        }
        // If they have not ended, their launcher gets a signal to end them.
        if let (Ok(None), Ok(pid)) = (self.child.try_wait(), libc::pid_t::try_from(self.child.id()))
        {
            // SAFETY: the call takes numbers; the child was not waited for, so the
            // id is its own.
            unsafe { libc::kill(pid, libc::SIGTERM) };
            let end = Instant::now() + Duration::from_secs(3);
            while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
                thread::sleep(Duration::from_millis(5));
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        // The folder is removed only once: its name may belong to another team
        // later.
        let _ = fs::remove_dir_all(mem::take(&mut self.folder));
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.end();
    }
}

/// The driver's ends of the pipes.
struct Pipes {
    commands: Vec<File>,
    answers: File,
}

impl Pipes {
    fn make(folder: &Path, ranks: u32) -> std::io::Result<Self> {
        // The pipes are open in both directions, so that opening does not wait for
        // the other end.
        let open = |name: &str, flags| {
            let path = folder.join(name);
            let text = CString::new(path.as_os_str().as_bytes())?;
            // SAFETY: the pointer is to a C string that outlives the call.
            if unsafe { libc::mkfifo(text.as_ptr(), 0o600) } != 0 {
                return Err(std::io::Error::last_os_error());
            }
            let mut options = OpenOptions::new();
            options.read(true).write(true).custom_flags(flags).open(path)
        };
        let commands =
            (0..ranks).map(|rank| open(&rank.to_string(), 0)).collect::<Result<_, _>>()?;
        Ok(Self { commands, answers: open("answer", libc::O_NONBLOCK)? })
    }
}

fn fresh_folder(guardian: &Guardian) -> std::io::Result<PathBuf> {
    let all = guardian.folder().ok_or(ErrorKind::NotFound)?;
    for number in 0.. {
        let folder = all.join(number.to_string());
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
    unreachable!("there are more numbers than folders")
}

/// The interval at which the driver checks that the ranks still exist.
const LOOK_AGAIN_MS: i32 = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn guardian() -> Guardian {
        Guardian::start(Some("team")).unwrap()
    }

    /// A system with a single rank: a shell.
    fn shell(script: &str) -> System {
        let words = ["sh", "-c", script, "FOLDER"].map(str::to_owned).to_vec();
        System { name: "sh".to_owned(), words, env: Vec::new() }
    }

    #[test]
    fn a_team_answers_until_it_is_dropped() {
        let script = r#"while read line; do
            echo "ns 1.5"; echo "ns 2"; echo "said ${#line}"; echo end; done <FOLDER/0 >FOLDER/answer"#;
        // `FOLDER` is replaced only as a whole word, so the script finds the folder
        // by `$0`.
        let guardian = guardian();
        let mut team = shell(&script.replace("FOLDER", "\"$0\"")).start(1, &guardian).unwrap();
        let folder = team.folder.clone();
        for _ in 0..2 {
            let answer = team.ask("latency", Duration::from_secs(20)).unwrap();
            assert_eq!(answer.ns, [1.5, 2.0]);
            assert_eq!(answer.counts, [("said".to_owned(), 7)]);
        }
        drop(team);
        assert!(!folder.exists());
        let all = guardian.folder().unwrap().to_owned();
        assert!(all.exists());
        drop(guardian);
        assert!(!all.exists());
    }

    #[test]
    fn ranks_that_end_are_noticed() {
        let guardian = guardian();
        let mut team = shell("exit 3").start(1, &guardian).unwrap();
        let failure = team.ask("latency", Duration::from_secs(20)).unwrap_err();
        assert!(failure.to_string().contains("sh: the ranks have ended"), "{failure}");
    }

    #[test]
    fn a_peer_is_a_name_and_a_command() {
        let peer = System::parse("mpich=mpiexec -n N message FOLDER").unwrap();
        assert_eq!((peer.name.as_str(), peer.words.len()), ("mpich", 5));
        assert!(System::parse("mpich").is_err() && System::parse("mpich=").is_err());
    }
}
