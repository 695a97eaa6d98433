//! Ranks that are threads, of which some communicate by parcels only: shuffled,
//! refused now and then, and lost when the receiver dies.

use crate as api;
use crate::tests::ending::cut_off;
use crate::{AddrError, Config, Error, MessageError, Rank, Received, Runtime, Source, Tags};
use std::sync::{Arc, Mutex, OnceLock};
use tsumugi_conformance::Seeded;
use tsumugi_core::msg::{MatchingDesign, PARCEL_BYTES_MIN};
use tsumugi_pvas::Member;
use tsumugi_runtime::net::{Parcel, ParcelError, ParcelHandler, Transport};
use tsumugi_runtime::node_ranks::NodeRanks;
use tsumugi_ult::SystemFutex;

#[path = "../../tests/job/mixture.rs"]
mod mixture;

/// The network between the nodes.
struct Network {
    parcel_bytes_max: usize,
    /// The node of each rank.
    nodes: Vec<u32>,
    ranks: Vec<Station>,
}

/// The parcels on the way to a rank.
struct Station {
    coming: Mutex<(Vec<Sent>, Seeded)>,
    handler: OnceLock<ParcelHandler>,
}

/// A parcel and its sender.
type Sent = (Rank, Vec<u8>);

/// A rank's port to the network.
struct Port {
    network: Arc<Network>,
    member: Member,
}

impl Transport for Port {
    fn is_near(&self, rank: Rank) -> bool {
        let nodes = &self.network.nodes;
        nodes[rank.0 as usize] == nodes[self.member.rank().0 as usize]
    }

    fn is_alive(&self, rank: Rank) -> bool {
        self.member.control_of(rank).is_alive()
    }

    fn parcel_bytes_max(&self) -> usize {
        self.network.parcel_bytes_max
    }

    fn try_send(&self, to: Rank, kind: Parcel, bytes: &[u8]) -> Result<(), ParcelError> {
        assert_eq!(kind, Parcel::Message);
        if !self.is_alive(to) {
            return Err(ParcelError::Addr(AddrError::PeerLost { rank: to }));
        }
        let mut coming = self.network.ranks[to.0 as usize].coming.lock().unwrap();
        if coming.1.below(8) == 0 || coming.0.len() > 200 {
            return Err(ParcelError::Full);
        }
        coming.0.push((self.member.rank(), bytes.to_vec()));
        drop(coming);
        self.member.control_of(to).bells().ring(&SystemFutex);
        Ok(())
    }

    fn on_parcel(&self, kind: Parcel, handle: ParcelHandler) {
        assert_eq!(kind, Parcel::Message);
        let own = &self.network.ranks[self.member.rank().0 as usize];
        assert!(own.handler.set(handle).is_ok(), "set once");
    }

    fn poll(&self) -> bool {
        let own = &self.network.ranks[self.member.rank().0 as usize];
        let mut has_come = false;
        for _ in 0..4 {
            let mut coming = own.coming.lock().unwrap();
            let (parcels, seeded) = &mut *coming;
            if parcels.is_empty() || seeded.below(4) == 0 {
                return has_come || !parcels.is_empty();
            }
            let (from, bytes) = parcels.swap_remove(seeded.below(parcels.len() as u64) as usize);
            drop(coming);
            own.handler.get().expect("set before the first parcel")(from, &bytes);
            has_come = true;
        }
        has_come
    }
}

/// Runs ranks on the nodes with these numbers.
fn run(
    nodes: &[u32],
    design: MatchingDesign,
    parcel_bytes_max: usize,
    main: impl Fn(&Runtime) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let station =
        |seed| Station { coming: Mutex::new((Vec::new(), Seeded(seed))), handler: OnceLock::new() };
    let ranks = (0..nodes.len() as u64).map(station).collect();
    let network = Arc::new(Network { parcel_bytes_max, nodes: nodes.to_vec(), ranks });
    let config = Config::from_env()?.messages(design);
    let other_nodes = |member: &Member| {
        let own = member.rank();
        let of_node = (0..nodes.len()).filter(|rank| nodes[*rank] == nodes[own.0 as usize]);
        let neighbours = NodeRanks::new(own, of_node.map(|rank| Rank(rank as u32)));
        let port = Port { network: network.clone(), member: member.clone() };
        (Some(neighbours), Some(Arc::new(port) as Arc<dyn Transport>))
    };
    let refused = |rt: &Runtime| {
        main(rt)?;
        rt.barrier()?;
        assert_eq!(rt.handle().messages().counts().dropped, 0, "a valid parcel was dropped");
        Ok(())
    };
    config.run_ranks_apart(nodes.len() as u32, other_nodes, refused).map(|_| ())
}

/// A ULT that polls for its message is cut off: another ULT can poll, and the next
/// receive gets the message.
#[test]
fn a_ult_that_is_cut_off_while_it_polls_lets_others_poll() {
    let cut_off_while_it_polls = |rt: &Runtime| {
        let comm = rt.comm();
        // The ULT is cut off before its receive is posted, and after.
        for len in [8, 100_000] {
            let theirs = comm.clone();
            cut_off(move || {
                let _ = theirs.recv(Rank(0), 7, &mut vec![0u8; len]);
            });
            assert!(!rt.handle().messages().is_watched(), "{len}");
            comm.send(Rank(0), 7, b"next")?;
            let mut next = vec![0u8; len];
            assert_eq!(comm.recv(Rank(0), 7, &mut next)?.bytes, 4);
        }
        Ok::<_, Error>(())
    };
    for workers in [1, 2] {
        let config = Config::default().workers(workers).spin(1 << 28);
        config.run_ranks(1, cut_off_while_it_polls).unwrap();
    }
}

#[test]
fn all_rules_hold_between_nodes() {
    for (nodes, design, parcel_bytes_max) in [
        (&[0, 0, 1][..], MatchingDesign::Mirror, 4096),
        (&[0, 1, 0], MatchingDesign::Locked, 1000),
        (&[0, 1, 2], MatchingDesign::TwoCopy, PARCEL_BYTES_MIN),
    ] {
        run(nodes, design, parcel_bytes_max, |rt| mixture::play(rt, 5000, 30)).unwrap();
    }
}

#[test]
fn any_length_arrives_from_another_node() {
    run(&[0, 1], MatchingDesign::Mirror, 8192, |rt| {
        let (comm, peer) = (rt.comm(), Rank(1 - rt.rank().0));
        for bytes in [0, 1, 8, 89, 200, 201, 2048, 8193, 24_576, 24_577, 100_000, 3 << 20] {
            let value = |at: usize| (at * 7 + bytes) as u8;
            let values: Vec<u8> = (0..bytes).map(value).collect();
            let mut into = rt.buffer::<u8>(bytes)?;
            let received = comm.send_recv(peer, 1, &values, peer, 1, &mut into)?;
            assert_eq!(received, Received { source: peer, tag: 1, bytes });
            assert_eq!(into[..], values[..], "{bytes}");
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn messages_of_both_kinds_keep_their_order() {
    run(&[0, 0, 1, 1], MatchingDesign::Mirror, 2048, |rt| {
        let comm = rt.comm();
        if rt.rank() == Rank(0) {
            let mut last = [None; 4];
            for _ in 0..3 * 400 {
                let mut value = [0u64; 16];
                let Received { source, bytes, .. } =
                    comm.recv(Source::Any, Tags::Any, &mut value)?;
                assert_eq!(bytes, if value[0] % 5 == 0 { 128 } else { 8 });
                let last = &mut last[source.0 as usize];
                assert_eq!(last.replace(value[0]).map_or(0, |last| last + 1), value[0], "{source}");
            }
        } else {
            for number in 0..400u64 {
                let value = [number; 16];
                comm.send(Rank(0), 1, &value[..if number % 5 == 0 { 16 } else { 1 }])?;
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_flood_waits_until_its_receiver_takes_it() {
    run(&[0, 1], MatchingDesign::TwoCopy, 1024, |rt| {
        let comm = rt.comm();
        if rt.rank() == Rank(0) {
            for number in 0..3000u32 {
                comm.send(Rank(1), number % 3, &[number])?;
            }
        } else {
            for number in (0..3000u32).filter(|number| number % 3 == 2) {
                let mut value = [0];
                comm.recv(Rank(0), 2, &mut value)?;
                assert_eq!(value, [number]);
                for tag in [0, 1] {
                    comm.recv(Rank(0), tag, &mut value)?;
                    assert_eq!(value, [number + tag - 2]);
                }
            }
        }
        Ok(())
    })
    .unwrap();
}

/// A receive gets its message behind any number of others, and any number of sends and receives
/// are under way: the tables grow.
#[test]
fn a_message_behind_many_others_is_received() {
    const MANY: u32 = 12_000;
    for (nodes, bytes) in [([0, 0], 1024), ([0, 1], 4096)] {
        let done = run(&nodes, MatchingDesign::Mirror, bytes, |rt| {
            let comm = rt.comm();
            let (mut got, numbers) = (vec![[0u32]; MANY as usize], (0..MANY).collect::<Vec<_>>());
            if rt.rank() == Rank(0) {
                comm.scope(|scope| {
                    for number in &numbers {
                        scope.isend(Rank(1), 7, std::slice::from_ref(number))?;
                    }
                    scope.isend(Rank(1), 9, &[MANY])?.wait()?;
                    scope.wait_all()
                })?;
                comm.send(Rank(1), 9, &[0u32])?;
            } else {
                let mut last = [0];
                comm.recv(Rank(0), 9, &mut last)?;
                assert_eq!(last, [MANY]);
                comm.scope(|scope| {
                    for into in &mut got[1..] {
                        scope.irecv(Rank(0), 7, into)?;
                    }
                    scope.wait_all()
                })?;
                comm.recv(Rank(0), 7, &mut got[0])?;
                comm.recv(Rank(0), 9, &mut last)?;
                let in_order = got[1..].iter().chain(&got[..1]).flatten();
                assert!(in_order.eq(&numbers));
            }
            Ok(())
        });
        done.unwrap();
    }
}

#[test]
fn the_death_of_a_rank_of_another_node_ends_waits_for_it() {
    let ended = run(&[0, 1], MatchingDesign::Mirror, 4096, |rt| {
        let comm = rt.comm();
        if rt.rank() == Rank(1) {
            comm.send(Rank(0), 1, b"last words")?;
            let mut word = [0u8; 4];
            comm.recv(Rank(0), 1, &mut word)?;
            // This rank is the only one that fails.
            return Err(Error::Message(MessageError::Cancelled));
        }
        let mut words = [0u8; 10];
        comm.recv(Rank(1), 1, &mut words)?;
        comm.send(Rank(1), 1, b"ends")?;
        let lost = MessageError::PeerLost { rank: Rank(1) };
        assert_eq!(comm.recv(Rank(1), 2, &mut words), Err(lost));
        let long = vec![0u8; 1 << 20];
        assert_eq!(comm.send(Rank(1), 2, &long), Err(lost));
        Ok(())
    });
    assert!(ended.is_err());
}
