//! Systems that take turns, each in a process of its own.
//!
//! ```text
//!  bare     ▄▄▄            ▄▄▄
//!  tsumugi     ▄▄▄            ▄▄▄         the others are stopped meanwhile,
//!  rayon          ▄▄▄            ▄▄▄      whether or not their workers spin
//! ```
//!
//! A system that hangs or dies loses its own cell, and the other systems go on.

use std::cmp::Reverse;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A system in a process of its own. The process is stopped except during its
/// turns, and killed when this value is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
    /// The CPUs for the threads that work most in the rehearsal.
    pins: Vec<usize>,
}

/// Why there are no numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The system itself reports that it cannot, and why.
    Refused(String),
    /// The system did not answer within this time.
    Hung(Duration),
    /// The process ended, in this way.
    Died(String),
}

impl Process {
    /// Starts a system. The command's program must give its standard input and
    /// output to an [`Inbox`](crate::Inbox). The threads that work most in a
    /// rehearsal are pinned to one of `pins` each, as far as the system allows;
    /// threads are found by their work because each system names its workers
    /// differently.
    ///
    /// # Errors
    ///
    /// The error of the operating system, if the process cannot be started.
    pub fn start(command: &mut Command, pins: &[usize]) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let requests = child.stdin.take().expect("the input is a pipe");
        let output = BufReader::new(child.stdout.take().expect("the output is a pipe"));
        let (sender, answers) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The receiver of a system that has hung may be gone.
                let _ = sender.send(line);
            }
        });
        Ok(Self { child, requests, answers, pins: pins.to_vec() })
    }

    /// Gives the system a turn, and returns what its batches took.
    ///
    /// # Errors
    ///
    /// - [`Missing::Hung`]: there was no answer within `limit`.
    /// - [`Missing::Died`]: the process has ended, or has closed its output.
    /// - [`Missing::Refused`]: the system cannot do this row, with its reason.
    ///
    /// No other turn may follow.
    pub fn turn(&mut self, limit: Duration) -> Result<Vec<f64>, Missing> {
        self.signal(libc::SIGCONT);
        let late = Instant::now() + limit;
        let asked = self.requests.write_all(b"turn\n").and_then(|()| self.requests.flush());
        let answer = loop {
            let left = late.saturating_duration_since(Instant::now());
            match self.answers.recv_timeout(left) {
                // A library may write lines of its own.
                Ok(line) if !line.starts_with(['=', '!']) => {}
                Ok(line) => break line,
                Err(RecvTimeoutError::Timeout) => return Err(Missing::Hung(limit)),
                Err(RecvTimeoutError::Disconnected) => return Err(self.death()),
            }
        };
        asked.ok();
        self.signal(libc::SIGSTOP);
        match answer.strip_prefix("! ") {
            Some(why) => Err(Missing::Refused(why.to_owned())),
            None => Ok(answer[1..].split_whitespace().filter_map(|v| v.parse().ok()).collect()),
        }
    }

    /// Gives turns that do not count, if the threads are to be pinned: until then
    /// two of them may share a CPU.
    fn rehearse(&mut self, limit: Duration) -> Result<(), Missing> {
        if self.pins.is_empty() {
            return Ok(());
        }
        self.turn(limit)?;
        // The time for starting up does not count.
        let before = self.used();
        self.turn(limit)?;
        let mut used = self.used();
        for (thread, used) in &mut used {
            *used -= before.iter().find(|known| known.0 == *thread).map_or(0, |known| known.1);
        }
        used.sort_unstable_by_key(|(_, used)| Reverse(*used));
        for ((thread, _), cpu) in used.into_iter().zip(self.pins.drain(..)) {
            let mut words = vec![0u64; cpu / 64 + 1];
            words[cpu / 64] = 1 << (cpu % 64);
            // SAFETY: the kernel reads the given number of bytes at the
            // pointer, and the vector holds that many.
            unsafe {
                let bytes = size_of_val(words.as_slice());
                libc::sched_setaffinity(thread, bytes, words.as_ptr().cast())
            };
        }
        Ok(())
    }

    /// Returns the process's threads, and for how many nanoseconds each had a CPU.
    fn used(&self) -> Vec<(libc::pid_t, u64)> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let thread = |entry: io::Result<std::fs::DirEntry>| {
            let path = entry.ok()?.path();
            let used = std::fs::read_to_string(path.join("schedstat")).ok()?;
            let id = path.file_name()?.to_str()?.parse().ok()?;
            Some((id, used.split(' ').next()?.parse().ok()?))
        };
        threads.into_iter().flatten().filter_map(thread).collect()
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the call has no memory operands. The child has not been waited
        // for, so its number is still its own.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    #[cold]
    fn death(&mut self) -> Missing {
        // The process's output is closed. If the process does not end by itself,
        // it is killed on drop.
        let late = Instant::now() + DYING;
        while Instant::now() < late {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Missing::Died(described(status));
            }
            thread::sleep(Duration::from_millis(1));
        }
        Missing::Died("the process closed its output".to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn described(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(0), _) => "exit code 0, without an answer".to_owned(),
        (Some(code), _) => format!("exit code {code}"),
        (_, Some(signal)) => format!("signal {signal}"),
        _ => status.to_string(),
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(why) => f.write_str(why),
            Self::Hung(limit) => write!(f, "hung: no answer in {} s", limit.as_secs()),
            Self::Died(how) => write!(f, "died: {how}"),
        }
    }
}

/// Gives `processes` turns until `enough` returns true; it is called with the
/// number of rounds so far. Returns what the batches took, by process.
pub fn take_turns(
    processes: &mut [Result<Process, Missing>],
    limit: Duration,
    mut enough: impl FnMut(u32) -> bool,
) -> Vec<Result<Vec<f64>, Missing>> {
    let mut samples = vec![Vec::new(); processes.len()];
    for process in &mut *processes {
        if let Ok(running) = process
            && let Err(missing) = running.rehearse(limit)
        {
            *process = Err(missing);
        }
    }
    let mut rounds = 0;
    while processes.iter().any(Result::is_ok) && !enough(rounds) {
        for (process, samples) in processes.iter_mut().zip(&mut samples) {
            let Ok(running) = process else { continue };
            match running.turn(limit) {
                Ok(values) => samples.extend(values),
                Err(missing) => *process = Err(missing),
            }
        }
        rounds += 1;
    }
    let outcome = |(process, samples): (&Result<Process, Missing>, Vec<f64>)| {
        process.as_ref().map(|_| samples).map_err(Missing::clone)
    };
    processes.iter().zip(samples).map(outcome).collect()
}

/// How long a process may take from the end of its output to its end.
const DYING: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<Process, Missing> {
        Ok(Process::start(Command::new("sh").args(["-c", script]), &[]).expect("there is a shell"))
    }

    #[test]
    fn each_process_has_as_many_turns_as_the_others() {
        let count = "n=0; while read turn; do n=$((n+1)); echo noise; echo = $n 0.5; done";
        let mut processes = [shell(count), shell(count)];
        let samples = take_turns(&mut processes, Duration::from_secs(20), |rounds| rounds == 2);
        let expected = Ok(vec![1.0, 0.5, 2.0, 0.5]);
        assert_eq!(samples, [expected.clone(), expected]);
    }

    #[test]
    fn a_process_that_fails_ends_its_own_cell_only() {
        let good = "while read turn; do echo = 1; done";
        let mut processes = [
            shell("read turn; kill -ABRT $$"),
            shell("read turn; exit 3"),
            shell("read turn; echo ! has none"),
            shell(good),
        ];
        let samples = take_turns(&mut processes, Duration::from_secs(20), |rounds| rounds == 3);
        let said = |n: usize| samples[n].clone().unwrap_err().to_string();
        assert_eq!(
            [said(0), said(1), said(2)],
            ["died: signal 6", "died: exit code 3", "has none"]
        );
        assert_eq!(samples[3], Ok(vec![1.0; 3]));
    }

    #[test]
    fn a_process_that_hangs_is_given_up() {
        let mut process = shell("read turn; exec sleep 1000");
        let missing = process.as_mut().unwrap().turn(Duration::from_millis(20)).unwrap_err();
        assert_eq!(missing, Missing::Hung(Duration::from_millis(20)));
    }

    #[test]
    fn the_busiest_threads_are_pinned() {
        let last = *tsumugi::affinity::allowed().unwrap().last().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "while read turn; do echo = 1; done"]);
        let mut process = Process::start(&mut command, &[last, last]).unwrap();
        process.rehearse(Duration::from_secs(20)).unwrap();
        let thread = process.child.id();
        let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        assert_eq!(allowed.map(str::trim), Some(last.to_string().as_str()));
    }

    #[test]
    fn a_process_does_not_run_between_its_turns() {
        let mut process = shell("while read turn; do echo = 1; done").unwrap();
        process.turn(Duration::from_secs(20)).unwrap();
        let stat = format!("/proc/{}/stat", process.child.id());
        let state = || {
            let stat = std::fs::read_to_string(&stat).unwrap();
            stat.rsplit_once(") ").map(|(_, after)| after.starts_with('T'))
        };
        let late = Instant::now() + Duration::from_secs(20);
        while state() != Some(true) {
            assert!(Instant::now() < late, "the process still runs");
            thread::yield_now();
        }
    }
}
