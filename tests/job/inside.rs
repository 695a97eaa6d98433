//! A rank whose ULTs are reported on a signal.

use crate::launched::start_with;
use std::path::Path;
use std::time::Duration;
use tsumugi::ult::sync::Semaphore;
use tsumugi::ult::{Builder, UltState};
use tsumugi::{Error, Runtime};

/// Each rank reports its ULTs on a signal, and leaves a trace.
pub fn a_rank_shows_what_its_ults_do() {
    let folder = std::env::temp_dir().join(format!("tsumugi-traces-{}", std::process::id()));
    let at = folder.to_str().unwrap();
    let mut job = start_with(2, "shown", &[("TSUMUGI_REPORT", "usr2"), ("TSUMUGI_TRACE", at)]);
    job.read_until("working", 2);
    let mut said = String::new();
    let shown = |said: &str, what: &str| {
        let of = |rank| said.lines().any(|line| line.starts_with(rank) && line.contains(what));
        of("rank 0: ") && of("rank 1: ")
    };
    let (name, frame) = ("\"patient\" Sleeping", "waits_to_be_found");
    let has_backtraces = cfg!(target_arch = "x86_64");
    // A rank whose workers do not get their cores has no backtraces in its report, so the
    // report is requested again.
    for asked in 1.. {
        // SAFETY: `kill` accesses no memory of this process. The launcher passes the signal
        // on to the ranks.
        assert_eq!(unsafe { libc::kill(job.child.id() as i32, libc::SIGUSR2) }, 0);
        let reports = |said: &str| said.matches("\"patient\"").count();
        while reports(&said) < 2 * asked {
            said.push_str(&job.read_errors_until("\n"));
        }
        let ends = |said: &str| [frame, "did not stop within"].map(|end| said.matches(end).count());
        while has_backtraces && ends(&said).iter().sum::<usize>() < 2 * asked {
            said.push_str(&job.read_errors_until("\n"));
        }
        if shown(&said, name) && (!has_backtraces || shown(&said, frame)) {
            break;
        }
        assert!(asked < 20, "{said}");
    }
    std::fs::write(folder.join(END), "").unwrap();
    let done = job.finish();
    assert_eq!(done.code, Some(0), "{}", done.text);
    for rank in 0..2 {
        let trace = std::fs::read_to_string(folder.join(format!("rank-{rank}.json"))).unwrap();
        assert!(trace.contains("\"left\":\"semaphore\""), "{trace}");
        // The ULT has ended before the trace is written.
        assert!(trace.contains("\"name\":\"patient\""), "{trace}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    // A signal that cannot be used for reports is refused.
    let done = start_with(1, "shown", &[("TSUMUGI_REPORT", "kill")]).finish();
    assert_eq!(done.code, Some(7), "{}", done.text);
    assert!(done.text.contains("TSUMUGI_REPORT") && done.text.contains("kill"), "{}", done.text);
}

/// A ULT sleeps until a file exists, which the case writes when it has seen the reports.
pub fn play(rt: &Runtime) -> Result<(), Error> {
    let room = std::sync::Arc::new(Semaphore::new(0));
    let until = room.clone();
    let patient = Builder::new().name("patient").spawn(move || waits_to_be_found(&until));
    let mut asleep = false;
    while !asleep {
        tsumugi::ult::yield_now();
        rt.ults().dump(&mut |ult| {
            asleep |= ult.name.as_deref() == Some("patient") && ult.state == UltState::Sleeping;
        });
    }
    rt.barrier()?;
    println!("working");
    let folder = std::env::var("TSUMUGI_TRACE").map_err(Error::other)?;
    while !Path::new(&folder).join(END).exists() {
        tsumugi::ult::sleep(Duration::from_millis(5));
    }
    rt.barrier()?;
    room.release(1);
    let _ = patient.join();
    Ok(())
}

#[inline(never)]
fn waits_to_be_found(room: &Semaphore) -> u64 {
    room.acquire(1);
    std::hint::black_box(1)
}

const END: &str = "end";
