//! One host: the command that starts an agent there, and the command's standard
//! input.

use super::event::LaunchEvent;
use super::order::{AgentOrder, DEATH};
use crate::job;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tsumugi::boot::env;
use tsumugi::pvas::launch::Stream;

/// A host with an agent.
#[derive(Debug)]
pub struct Remote {
    host: String,
    ranks: Vec<u32>,
    input: Option<ChildStdin>,
    client: Arc<Client>,
}

/// The command that has started the agent, and that ends with it.
#[derive(Debug)]
struct Client(Mutex<Child>);

/// The words that start a command on another host.
pub fn rsh() -> String {
    let chosen = std::env::var_os(env::RSH);
    chosen.map_or_else(|| env::RSH_DEFAULT.to_owned(), |rsh| rsh.to_string_lossy().into_owned())
}

impl Remote {
    /// Starts the agent `own` on `host`; its end is sent as an event with `index`
    /// and the exit code. Also returns the streams of its output.
    pub fn start(
        host: &str,
        own: &Path,
        order: &AgentOrder,
        index: usize,
        ended: &Sender<LaunchEvent>,
    ) -> io::Result<(Self, Vec<(OwnedFd, Stream)>)> {
        let rsh = rsh();
        let mut words = rsh.split_whitespace();
        let program = words.next().ok_or_else(|| io::Error::other("it has no word"))?;
        let mut command = Command::new(program);
        command
            .args(words)
            .arg(host)
            .arg(agent_of(own))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // The secret must not be in an environment that other users may see by
            // `ps e`.
            .env_remove(env::SECRET);
        // The signal may come before the command has reached the host.
        job::end_with_us(&mut command, libc::SIGTERM);
        let mut child = command.spawn()?;
        let mut input = child.stdin.take();
        let out = child.stdout.take().map(|out| (out.into(), Stream::Out));
        let err = child.stderr.take().map(|err| (err.into(), Stream::Err));
        if let Some(to) = &mut input {
            // If the command has ended already, its exit code reports that.
            let _ = order.send(to);
        }
        let (ended, pid) = (ended.clone(), child.id());
        let client = Arc::new(Client(Mutex::new(child)));
        let waited = client.clone();
        thread::spawn(move || {
            let code = waited.wait(pid);
            // Sending fails if the launcher has ended before; then no receiver is
            // left.
            let _ = ended.send(LaunchEvent::Agent { index, code });
        });
        let remote = Self { host: host.to_owned(), ranks: order.ranks.clone(), input, client };
        Ok((remote, out.into_iter().chain(err).collect()))
    }

    /// The host's name.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The ranks of the job on this host.
    pub fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// Passes a signal on to the agent.
    pub fn signal(&mut self, signal: i32) {
        self.write(&[signal as u8]);
    }

    /// Notifies the agent which rank's death ends the job.
    pub fn tell(&mut self, dead: u32) {
        self.write(&[&[DEATH], &dead.to_le_bytes()[..]].concat());
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(input) = &mut self.input {
            // An agent that has ended needs no message.
            let _ = input.write_all(bytes).and_then(|()| input.flush());
        }
    }

    /// Closes the agent's input, so that the agent ends its ranks if it has not
    /// ended itself.
    pub fn leave(&mut self) {
        self.input = None;
    }

    /// Kills the command that has started the agent, if it has not ended itself,
    /// because its host does not answer.
    pub fn abandon(&mut self) {
        self.client.kill();
    }
}

impl Client {
    /// Waits for the command; returns its exit code, or 128 plus the signal that has
    /// killed it. Blocking.
    fn wait(&self, pid: u32) -> i32 {
        // Until the wait below, the process id belongs to this child.
        // SAFETY: all zeroes is a valid siginfo, which the call fills in.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let how = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: the call writes only to `info`, which outlives it.
        while unsafe { libc::waitid(libc::P_PID, pid, &mut info, how) } == -1
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
        let status = self.0.lock().unwrap_or_else(PoisonError::into_inner).wait();
        status.map_or(1, |status| {
            let signal = status.signal().map(|signal| 128 + signal);
            status.code().or(signal).unwrap_or(1)
        })
    }

    fn kill(&self) {
        // If the child was waited for, this does nothing.
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }
}

/// The command line for the shell on the host.
fn agent_of(own: &Path) -> OsString {
    let mut command = OsString::from("exec ");
    command.push(quoted(own.as_os_str()));
    command.push(" agent");
    command
}

/// The text quoted as one word for a shell.
fn quoted(word: &OsStr) -> OsString {
    let parts: Vec<&[u8]> = word.as_bytes().split(|byte| *byte == b'\'').collect();
    OsString::from_vec([b"'", &parts.join(&br"'\''"[..])[..], b"'"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_quoted_word_as_one_word() {
        for word in [&b"/a b/c"[..], b"it's", b"$(x)", b"a\\b", b"\xff"] {
            let mut command = OsString::from("printf %s ");
            command.push(quoted(OsStr::from_bytes(word)));
            let output = Command::new("sh").arg("-c").arg(&command).output().unwrap();
            assert_eq!(output.stdout, word);
        }
    }
}
