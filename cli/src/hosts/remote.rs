//! One host: the command that starts an agent there, and its standard input.

use super::order::Order;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use tsumugi::boot::env;

/// A host with an agent.
#[derive(Debug)]
pub struct Remote {
    host: String,
    input: Option<ChildStdin>,
}

impl Remote {
    /// Starts the agent `own` on `host`; its end is told as `index` and its
    /// exit code.
    pub fn start(
        host: &str,
        own: &Path,
        order: &Order,
        index: usize,
        ended: &Sender<(usize, i32)>,
    ) -> io::Result<Self> {
        let rsh = std::env::var(env::RSH).unwrap_or_else(|_| env::RSH_DEFAULT.to_owned());
        let mut words = rsh.split_whitespace();
        let program = words.next().ok_or(io::ErrorKind::NotFound)?;
        let mut child = Command::new(program)
            .args(words)
            .arg(host)
            .arg(agent_of(own))
            .stdin(Stdio::piped())
            // Not in an environment that others may see by `ps e`.
            .env_remove(env::SECRET)
            .spawn()?;
        let mut input = child.stdin.take();
        if let Some(to) = &mut input {
            // One that has ended already says so by its code.
            let _ = order.send(to);
        }
        let ended = ended.clone();
        thread::spawn(move || {
            let code = child.wait().map_or(1, |status| {
                use std::os::unix::process::ExitStatusExt;
                let signal = status.signal().map(|signal| 128 + signal);
                status.code().or(signal).unwrap_or(1)
            });
            // The launcher has gone before it: nobody is left to tell.
            let _ = ended.send((index, code));
        });
        Ok(Self { host: host.to_owned(), input })
    }

    /// What it is called.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Passes on a signal.
    pub fn signal(&mut self, signal: i32) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(&[signal as u8]).and_then(|()| input.flush());
        }
    }

    /// Lets the agent end its ranks, if it has not ended itself.
    pub fn leave(&mut self) {
        self.input = None;
    }
}

/// What the shell there is to do.
fn agent_of(own: &Path) -> OsString {
    let mut command = OsString::from("exec ");
    command.push(quoted(own.as_os_str()));
    command.push(" agent");
    command
}

/// As one word for a shell.
fn quoted(word: &OsStr) -> OsString {
    let parts: Vec<&[u8]> = word.as_bytes().split(|byte| *byte == b'\'').collect();
    OsString::from_vec([b"'", &parts.join(&br"'\''"[..])[..], b"'"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_it_as_one_word() {
        for word in [&b"/a b/c"[..], b"it's", b"$(x)", b"a\\b", b"\xff"] {
            let mut command = OsString::from("printf %s ");
            command.push(quoted(OsStr::from_bytes(word)));
            let output = Command::new("sh").arg("-c").arg(&command).output().unwrap();
            assert_eq!(output.stdout, word);
        }
    }
}
