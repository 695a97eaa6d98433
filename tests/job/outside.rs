//! Messages between buffers outside of the partitions.

// The crate `tsumugi`, under a name that the crate's own tests can use, too.
use super::{api, roles};
use api::{Error, Rank, Runtime};

/// A ring of long messages between vectors outside of the partitions. Some messages are
/// longer than their receive, and some are from or to a partition. Prints how many
/// messages the kernel has copied.
pub fn play(rt: &Runtime) -> Result<(), Error> {
    let comm = rt.comm();
    let [next, previous] = [1, rt.size() - 1].map(|by| Rank((rt.rank().0 + by) % rt.size()));
    for round in 0..20u32 {
        for (kind, len) in (0..).zip([700, 9_000, 40_000, 100_001, 1 << 20]) {
            let tag = round * 8 + kind;
            let of = |rank: Rank| (0..len).map(move |at: usize| (at as u32 ^ tag ^ rank.0) as u8);
            let (sent, wanted): (Vec<u8>, Vec<u8>) =
                (of(rt.rank()).collect(), of(previous).collect());
            let mut received = vec![0; len];
            comm.send_recv(next, tag, &sent, previous, tag, &mut received)?;
            assert!(received == wanted, "{len} bytes of round {round}");

            let mut inside = rt.buffer::<u8>(len)?;
            comm.send_recv(next, tag, &sent, previous, tag, &mut inside)?;
            assert!(inside[..] == wanted[..], "{len} bytes into the partition");
            inside.copy_from_slice(&sent);
            received.fill(0);
            comm.send_recv(next, tag, &inside, previous, tag, &mut received)?;
            assert!(received == wanted, "{len} bytes from the partition");

            let mut short = vec![0; len / 2];
            let cut = comm.send_recv(next, tag, &sent, previous, tag, &mut short);
            assert!(
                cut.is_err() && short[..] == wanted[..len / 2],
                "{len} bytes, cut off: {cut:?}"
            );
            rt.barrier()?;
        }
    }
    roles::say(&format!("by kernel {}", comm.counts().by_kernel));
    rt.barrier()
}

/// The same with processes whose memory the kernel does not let each other access: they
/// have an unprivileged user and cannot be traced.
pub fn alone(rt: &Runtime) -> Result<(), Error> {
    rt.barrier()?;
    // SAFETY: the calls access no memory. A process without the right to change its user
    // does not have the right to access other processes either, so the calls may fail.
    unsafe {
        libc::setresgid(NOBODY, NOBODY, NOBODY);
        libc::setresuid(NOBODY, NOBODY, NOBODY);
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
    }
    rt.barrier()?;
    play(rt)
}

const NOBODY: u32 = 65_534;
