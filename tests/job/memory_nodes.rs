//! The pages of a rank lie on the memory node of its core, whichever rank touches them first.

use crate::launched::passes;
use crate::roles::say;
use std::io;
use tsumugi::pvas::numa;
use tsumugi::{Error, Rank, Runtime};

/// On a machine with one memory node, all pages lie there.
pub fn pages_lie_on_the_memory_node_of_their_rank() {
    let done = passes(2, "memory-nodes", &[]);
    for rank in 0..2 {
        assert_eq!(done.text.matches(&format!("rank {rank}: all of")).count(), 1, "{}", done.text);
    }
}

/// Each rank receives into memory that it has not touched, from a rank that may run beside
/// another memory node, and looks where its pages are, and those of a stack.
pub fn play(rt: &Runtime) -> Result<(), Error> {
    const BYTES: usize = 4 << 20;
    let peer = Rank((rt.rank().0 + 1) % rt.size());
    let sent = vec![7_u8; BYTES];
    let mut received = rt.buffer::<u8>(BYTES)?;
    rt.comm().send_recv(peer, 1, &sent, peer, 1, &mut received)?;
    let stack = rt.spawn(|_| {
        let local = std::hint::black_box([1_u8; 16 << 10]);
        nodes_of(&local)
    });
    let found = [nodes_of(&received), stack.join().expect("the ULT does not panic")];
    let cpus = tsumugi::affinity::allowed().expect("the system's list of CPUs");
    let Some(own) = numa::node_of(&cpus) else {
        return Err(Error::program(format!("the CPUs {cpus:?} are of several memory nodes")));
    };
    for nodes in found {
        match nodes {
            Ok(nodes) if nodes.iter().all(|node| *node == own as i32) => {}
            Ok(nodes) => {
                return Err(Error::program(format!("a page is not on node {own}: {nodes:?}")));
            }
            // A sandbox does not permit the question.
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {}
            Err(error) => return Err(Error::program(format!("move_pages: {error}"))),
        }
    }
    say(&format!("{}: all of its pages lie on memory node {own}", rt.rank()));
    rt.barrier()
}

/// The memory node of each page of these bytes.
fn nodes_of(bytes: &[u8]) -> io::Result<Vec<i32>> {
    let page = 4096;
    let pages: Vec<_> = bytes.chunks(page).map(<[u8]>::as_ptr).collect();
    let mut nodes = vec![0_i32; pages.len()];
    let none = std::ptr::null::<i32>();
    // SAFETY: the kernel reads the addresses, and writes a word for each.
    let outcome = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            pages.len(),
            pages.as_ptr(),
            none,
            nodes.as_mut_ptr(),
            0,
        )
    };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(nodes) }
}
