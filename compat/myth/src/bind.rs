//! Binding of workers to processors, as `MYTH_BIND_WORKERS` and `MYTH_CPU_LIST` say.
//!
//! ```text
//!   MYTH_CPU_LIST ::= range[,range]*      range ::= num[-num[:num]]
//! ```
//!
//! The range `A-B:C` stands for A, A+C, A+2C and so on, below B. Processors that the
//! process may not use are left out, and workers take the others in turn.

use tsumugi_ult::Progress;

/// Binds each worker to a processor when it starts.
#[derive(Debug)]
pub(crate) struct Binding(Vec<usize>);

impl Binding {
    /// The binding that the environment asks for; it binds nothing if `binds` is false.
    pub(crate) fn of_environment(binds: bool) -> Self {
        if !binds {
            return Self(Vec::new());
        }
        let allowed = allowed();
        let asked = std::env::var("MYTH_CPU_LIST").ok().and_then(|text| {
            let list = parse(&text);
            if list.is_none() {
                eprintln!("myth: malformed MYTH_CPU_LIST ignored");
            }
            list
        });
        let chosen = match asked {
            Some(list) => list.into_iter().filter(|cpu| allowed.contains(cpu)).collect(),
            None => allowed,
        };
        Self(chosen)
    }
}

impl Progress for Binding {
    fn poll(&self) -> bool {
        false
    }

    fn has_work(&self) -> bool {
        false
    }

    fn on_start(&self, worker: usize) {
        if self.0.is_empty() {
            return;
        }
        let cpu = self.0[worker % self.0.len()];
        // SAFETY: a set of processors is plain data; a refusal changes nothing.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
        }
    }
}

/// The processors that the process may use.
fn allowed() -> Vec<usize> {
    // SAFETY: a set of processors is plain data, of the size that is passed.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).collect()
    }
}

fn parse(text: &str) -> Option<Vec<usize>> {
    let mut list = Vec::new();
    for range in text.split(',') {
        let (range, step) = match range.split_once(':') {
            Some((range, step)) => (range, step.parse().ok().filter(|step| *step > 0)?),
            None => (range, 1),
        };
        match range.split_once('-') {
            Some((from, to)) => {
                let (from, to) = (from.parse::<usize>().ok()?, to.parse::<usize>().ok()?);
                list.extend((from..to).step_by(step));
            }
            None => list.push(range.parse().ok()?),
        }
    }
    Some(list)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn lists_of_processors_have_ranges_and_steps() {
        assert_eq!(parse("3"), Some(vec![3]));
        assert_eq!(parse("1,4-7,10-16:3"), Some(vec![1, 4, 5, 6, 10, 13]));
        assert_eq!(parse("1-"), None);
        assert_eq!(parse("4-8:0"), None);
    }
}
