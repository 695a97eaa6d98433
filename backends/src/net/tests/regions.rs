//! Memory that is registered with devices.

use super::fixture::*;
use crate::net::memory::Listing;
use crate::net::wire::WireKey;
use tsumugi_core::mem::{Access, Width};
use tsumugi_core::op::Op;

fn word(offset: u64) -> Op {
    Op::get_word(at(5, offset), Width::W8)
}

#[test]
fn a_post_carries_the_descriptor_of_its_registered_memory() {
    let mut net = Net::with(|limits| limits.local_mr = true);
    net.knows(PEER, &listing(5));
    let own = net.own(64, Access::Local);
    let registered = net.registered();
    assert_eq!(registered.len(), 3, "the directory, the scratch and the region");
    assert_eq!((registered[0].2, registered[1].2), (Access::Read, Access::Local));
    assert_eq!(registered[2].0, own.base.as_ptr() as usize);
    net.post(&[Op::put(local(&own, 0), at(5, 0), 8), word(8)]);
    assert_eq!((net.local(0).desc, net.local(1).desc), (3, 2));
    // Memory that is not registered with the device has no descriptor.
    let mut plain = Net::new();
    plain.knows(PEER, &listing(5));
    let own = plain.own(64, Access::Local);
    plain.post(&[Op::put(local(&own, 0), at(5, 0), 8)]);
    assert_eq!((plain.local(0).desc, plain.registered().len()), (0, 1));
}

#[test]
fn a_region_is_registered_as_its_directory_slot_says() {
    for key_bytes in [2, 4, 8] {
        let mut net = Net::with(|limits| limits.key_bytes = key_bytes);
        let region = net.own(65, Access::ReadWrite);
        let slot = region.key.index();
        assert_eq!(net.nic.directory.key(slot), Some(region.key));
        let (base, bytes, access, key) = *net.registered().last().unwrap();
        assert_eq!((base, bytes, access), (region.base.as_ptr() as usize, 65, Access::ReadWrite));
        let read = listed(&net, slot).unwrap();
        let wanted = Listing {
            key: region.key,
            access: 3,
            bytes: 65,
            origin: base as u64,
            skew: base as u64 % 64,
            raw: WireKey::of(key),
        };
        assert_eq!(read, wanted);
        if key_bytes == 2 {
            assert_eq!(key, 16 + slot as u64, "the slot's number, after 16 keys of the rail's own");
        }
        net.nic.unregister(region.key);
        assert_eq!((listed(&net, slot), net.closed()), (None, vec![2]));
        net.nic.unregister(region.key);
        assert_eq!(net.closed().len(), 1, "the registration was closed once");
    }
    // Empty regions, and regions that only the rank itself uses.
    let mut net = Net::with(|limits| limits.local_mr = true);
    let none = net.own(0, Access::Local);
    assert_eq!((net.registered().len(), net.nic.directory.key(none.key.index())), (2, None));
    let empty = net.own(0, Access::Read);
    assert_eq!(net.registered().last().unwrap().1, 1, "no registration is of 0 bytes");
    assert_eq!(listed(&net, empty.key.index()).unwrap().bytes, 0);
    let hidden = net.own(8, Access::Local);
    assert_eq!((net.registered().len(), listed(&net, hidden.key.index())), (4, None));
}

/// What a peer would read in the directory of the NIC endpoint.
fn listed(net: &Net, slot: usize) -> Option<Listing> {
    let start = net.registered()[0].0 as *const [u64; 16];
    // SAFETY: the directory's memory, which only this thread uses.
    Listing::decode(&unsafe { start.add(slot).read() }).unwrap()
}

#[test]
fn a_dropped_rail_closes_all_of_its_registrations() {
    let mut net = Net::with(|limits| limits.local_mr = true);
    net.own(64, Access::Read);
    let gone = net.own(64, Access::Read);
    net.nic.unregister(gone.key);
    let wire = net.wire.clone();
    drop(net);
    let mut shut = wire.line().shut.take().expect("the wire is shut");
    shut.sort_unstable();
    assert_eq!(shut, [1, 2, 3], "the directory, the scratch and a region");
}
