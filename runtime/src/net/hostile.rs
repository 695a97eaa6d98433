//! A test of hostile packets: whatever bytes another node sends to emulated operations
//! and heartbeats, there is no panic, no access outside of the registered memory, and
//! at most one end of each emulated operation.
//!
//! The corpus is replayed and mutated here; `fuzz/` has a target for it.

use super::emulation::{EmulatedRequest, Emulation, Sent};
use super::heartbeat;
use super::packet::PACKET_BYTES;
use super::parcel::Parcel;
use std::ptr::NonNull;
use tsumugi_core::backend::{Completion, LoadStore, execute, store_bytes};
use tsumugi_core::mem::{Access, LocalAddr, Need, RegionKey, RegionTable, RemoteAddr};
use tsumugi_core::mem::{AddrError, Rank};
use tsumugi_core::op::{Kind, Op};
use tsumugi_core::tag::Tag;
use tsumugi_pvas::Nodes;

/// The registered memory of the rank that gets the packets.
struct PacketMemory(RegionTable<4>);

// SAFETY: the table only has regions of memory that outlives it.
unsafe impl LoadStore for PacketMemory {
    fn size(&self) -> u32 {
        3
    }

    fn resolve(&self, addr: RemoteAddr, bytes: u64, need: Need) -> Result<NonNull<u8>, AddrError> {
        assert_eq!(addr.rank, OWN, "nobody asks for another's memory");
        self.0.resolve(addr, bytes, need)
    }

    fn local(&self, addr: LocalAddr, bytes: u64) -> Result<NonNull<u8>, AddrError> {
        let addr = RemoteAddr { offset: addr.offset, rank: OWN, key: addr.key };
        self.0.resolve(addr, bytes, Need::Local)
    }

    fn notify(&self, _: RemoteAddr, _: NonNull<u8>) {}
}

/// Handles packets to a rank that has emulated operations under way; each packet comes
/// after its length in two bytes. Returns how many of them were well formed.
///
/// # Panics
///
/// If the packets have done anything that they must not.
pub fn packets(bytes: &[u8]) -> usize {
    // Words, so that words of peers are aligned; the first and the last are guards
    // outside of all regions.
    let mut words = vec![GUARD; 2 + WORDS];
    let base = words.as_mut_ptr();
    let memory = PacketMemory(RegionTable::new());
    let region = |key, first: usize, count: usize, access| {
        // SAFETY: inside of the vector, which outlives the table's use.
        let base = unsafe { NonNull::new_unchecked(base.add(first)) }.cast();
        // SAFETY: the same.
        unsafe { memory.0.register_as(key, base, 8 * count as u64, access) }.expect("a region");
    };
    let half = WORDS / 2;
    region(SHARED, 1, half, Access::ReadWrite);
    region(BUFFER, 1 + half, half, Access::Local);
    let mut emulation = Emulation::new(OWN);
    let remote = RemoteAddr { offset: 0, rank: PEER, key: SHARED };
    let local = LocalAddr { offset: 0, key: BUFFER };
    let long = 8 * half as u64;
    let own = [
        Op::atomic(Kind::FetchAdd, remote, 1_u64),
        Op::put(local, remote, long),
        Op::get(remote, local, long),
    ];
    for (tag, op) in (0..).zip(own) {
        assert!(emulation.begin(&op.tagged(Tag::from_bits(tag)), || None));
    }
    let nodes = Nodes::new([1, 2, 2]);
    let mut ended = [false; 3];
    let (mut rest, mut taken) = (bytes, 0);
    loop {
        emulation.send(
            &memory,
            |_| false,
            false,
            |to, parcel| {
                assert!(to == PEER && parcel.len() < PACKET_BYTES, "{to}, {} bytes", parcel.len());
                Sent::Yes
            },
        );
        let mut completions = [Completion::EMPTY; 4];
        let count = emulation.poll(&mut completions);
        for completion in &completions[..count] {
            let ended = &mut ended[completion.tag.to_bits() as usize];
            assert!(!std::mem::replace(ended, true), "{completion:?} for the second time");
        }
        let Some((len, more)) = rest.split_first_chunk() else { break };
        let len = usize::from(u16::from_le_bytes(*len)).min(more.len());
        let (packet, more) = more.split_at(len);
        rest = more;
        taken += usize::from(match Parcel::of(packet) {
            Some((Parcel::Emulated, parcel)) => {
                emulation.handle(PEER, parcel, &memory, |asked| serve(&memory, asked))
            }
            Some((Parcel::Heartbeat, parcel)) => match heartbeat::parse(&nodes, 0, PEER, parcel) {
                Some((node, mut dead)) => node == 1 && dead.all(|rank| nodes.place(rank).is_some()),
                None => false,
            },
            Some((Parcel::GivenUp, parcel)) => heartbeat::parse_told(parcel).is_some(),
            Some((Parcel::Message | Parcel::Greeting, _)) | None => false,
        });
    }
    emulation.lose(|rank| (rank == PEER).then_some(rank));
    // SAFETY: both guard words are in the vector.
    let guards = unsafe { [base.read(), base.add(1 + WORDS).read()] };
    assert_eq!(guards, [GUARD; 2], "outside of all regions");
    drop(words);
    taken
}

/// Carries out a request as a link does.
fn serve(memory: &PacketMemory, asked: EmulatedRequest<'_>) -> Result<u64, AddrError> {
    match asked {
        EmulatedRequest::Word(op) => execute(memory, &op),
        EmulatedRequest::Put(to, bytes, _) => store_bytes(memory, to, bytes).map(|()| 0),
        EmulatedRequest::Joined(to, bytes, op) => {
            store_bytes(memory, to, bytes).and_then(|()| execute(memory, &op))
        }
        EmulatedRequest::Get(from, bytes) => memory.resolve(from, bytes, Need::Read).map(|_| 0),
    }
}

const OWN: Rank = Rank(0);
const PEER: Rank = Rank(1);
const SHARED: RegionKey = RegionKey::new(1, 1);
const BUFFER: RegionKey = RegionKey::new(2, 1);
const WORDS: usize = 2048;
const GUARD: u64 = 0x5ca1_ab1e_0ddb_a115;

#[cfg(test)]
mod tests;
