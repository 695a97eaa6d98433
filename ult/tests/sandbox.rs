//! Systems that refuse calls which a scheduler does not need.

use std::thread;
use tsumugi_ult::{Config, Scheduler, StackArea};

/// Makes `madvise` with this advice fail in the calling thread and in those that it starts.
fn refuse_advice(advice: libc::c_int, errno: libc::c_int) {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let (load, equal, end) = (0x20, 0x15, 0x06);
    let mut program = [
        // The call's number, and the low half of its third argument.
        step(load, 0, 0, 0),
        step(equal, 0, 3, libc::SYS_madvise as u32),
        step(load, 0, 0, 32),
        step(equal, 0, 1, advice as u32),
        step(end, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(end, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: plain calls; the filter outlives them.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter), 0);
    }
}

#[test]
fn a_scheduler_runs_where_madvise_dontfork_is_refused() {
    for errno in [libc::EINVAL, libc::EPERM] {
        let sandbox = thread::spawn(move || {
            refuse_advice(libc::MADV_DONTFORK, errno);
            let area = StackArea::map(16 << 20).unwrap();
            let config = Config::new(area).workers(2).main_stack_bytes(1 << 20);
            let scheduler = Scheduler::new(config).unwrap();
            let spawner = scheduler.spawner();
            scheduler.run(|| {
                let ults: Vec<_> = (0..20).map(|n| spawner.spawn(move || n)).collect();
                ults.into_iter().map(|ult| ult.join().unwrap()).sum::<u32>()
            })
        });
        assert_eq!(sandbox.join().unwrap(), 190);
    }
}
