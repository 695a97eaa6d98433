//! Names of regions, and the tables in which a rank finds them.

use super::*;

/// Two of a million ranks hold the table: each gets a request, by its bit and the hint for it,
/// and no other rank does.
#[test]
fn two_holders_among_a_million_are_found() {
    let job: &Job4<'static> = Box::leak(Box::new(Job4::new(1)));
    let ranks = 1_000_000;
    let shape = ControlShape { copies: 4, ..ControlShape::of(ranks, 1) };
    let split = Split::fit(ranks, 1, 1 << 30).unwrap();
    let here = Box::leak(Box::new(job.rank(Rank(0))));
    let Party { mut machine, words, here, .. } = party_of(here, split, shape);
    let region = expose(here, 1);
    let addr = machine.register(0, &region, Agent::Cpu).unwrap();
    let part = |name| {
        let before = shape.parts().into_iter().take_while(|part| part.name != name);
        before.map(|part| part.bytes as usize / 8).sum::<usize>()
    };
    let (bitmaps, hints) = (part("holders, drops, acks"), part("hints"));
    let (bitmap, hint) = ((hints - bitmaps) / 3, (part("notes") - hints) / 2);
    let holders = [70_001u32, 999_999];
    let set = |first: usize, bit: u32| {
        words[first + bit as usize / 64].fetch_or(1 << (bit % 64), Ordering::Relaxed);
    };
    holders.iter().for_each(|&rank| set(bitmaps, rank));
    machine.unregister(addr).unwrap();
    let mut asked = Vec::new();
    while let Some(out) = machine.poll_op() {
        let Op { remote, kind, notify, .. } = out.op;
        assert_eq!(kind, Kind::FetchOr);
        asked.push((remote.rank.0, notify));
        machine.handle(MachineEvent::Completed { tag: out.op.tag, result: Ok(0) }, Instant::ZERO);
    }
    let [one, other] = holders;
    assert_eq!(asked, [(one, false), (one, true), (other, false), (other, true)]);
    for rank in holders {
        assert_eq!(machine.poll(), None, "no region is free before {rank} has answered");
        set(bitmaps + 2 * bitmap, rank);
        set(hints + hint, rank / 64);
        assert!(has_rung(words, shape));
        machine.handle(MachineEvent::Rang, Instant::ZERO);
        assert!(!has_rung(words, shape));
    }
    assert!(
        matches!(machine.poll(), Some(MachineOutput::Retired(retired)) if retired.addr == addr)
    );
}

/// All names of a colour can be in use; they are given in turn.
#[test]
fn names_run_out_and_are_given_again() {
    let mut world = World::new(Delivery::default());
    let region = expose(world.parties[0].here, 1);
    let machine = &mut world.parties[0].machine;
    let addrs: Vec<GlobalAddr> =
        (0..REGIONS).map(|_| machine.register(0, &region, Agent::Cpu).unwrap()).collect();
    assert_eq!(machine.register(0, &region, Agent::Cpu), Err(NameError::Full { color: 0 }));
    assert_eq!(
        machine.register(1, &region, Agent::Cpu),
        Err(NameError::NoSuchColor { color: 1, colors: 1 })
    );
    machine.unregister(addrs[7]).unwrap();
    while machine.poll_op().is_some() {}
    assert!(
        matches!(machine.poll(), Some(MachineOutput::Retired(retired)) if retired.addr == addrs[7])
    );
    let again = machine.register(0, &region, Agent::Cpu).unwrap();
    let (old, new) = (world.split.place(addrs[7]).unwrap(), world.split.place(again).unwrap());
    assert_eq!((old.region, old.life + 1), (new.region, new.life));
}

/// A worker's own accesses use the cache and the backend, and the machine only when the table is
/// not here.
#[test]
fn a_worker_needs_the_machine_for_a_miss_alone() {
    let mut world = World::new(Delivery::default());
    let (region, addr) = world.open(2, 2);
    let cache = world.parties[1].machine.cache();
    let here = world.parties[1].here;
    assert_eq!(cache.hold::<0>(0, addr, 8, Need::Write), Err(Miss::NoTable));
    assert_eq!(world.parties[1].machine.want(addr), Ok(TableWanted::Coming));
    world.settle();
    let came = MachineOutput::Table { rank: Rank(2), result: Ok(()) };
    assert!(world.parties[1].outs.contains(&came));
    let HeldTarget { target, slot } = cache.hold::<0>(0, addr, 8, Need::Write).unwrap();
    execute(&here, &Op::put_word(target.remote, Width::W8, 5)).unwrap();
    assert!(!cache.release::<0>(0, slot), "no rank waits for the table");
    assert_eq!(peek(here, 2, &region, 0), 5);
    // A region that is younger than the copy of its table.
    let (_, younger) = world.open(2, 1);
    let Err(Miss::NotListed { version }) = cache.hold::<0>(0, younger, 8, Need::Read) else {
        panic!("the table was read before the region existed")
    };
    assert_eq!(world.parties[1].machine.want_newer(younger, version), Ok(TableWanted::Coming));
    world.settle();
    assert!(cache.hold::<0>(0, younger, 8, Need::Read).is_ok());
    assert!(!cache.release::<0>(0, slot));
    assert_eq!(world.parties[1].machine.table_counts(), (0, 2));
    // An operation in flight keeps the region until it has ended, and so does a worker that
    // accesses it.
    let held = cache.hold::<1>(1, addr, 8, Need::Write).unwrap();
    let pinned = cache.pin(addr, 8, Need::Write).unwrap();
    world.parties[2].machine.unregister(addr).unwrap();
    world.settle();
    assert_eq!(world.parties[2].machine.names(), 2, "one name is in use");
    assert_eq!(cache.hold::<0>(0, addr, 8, Need::Write), Err(Miss::NoTable));
    assert!(cache.unpin(pinned.slot), "the machine waits for the pin");
    world.settle();
    assert_eq!(world.parties[2].machine.names(), 2, "one name is in use");
    assert!(cache.release::<1>(1, held.slot), "the machine waits for the hold");
    world.settle();
    assert_eq!(world.parties[2].machine.names(), 1);
}

/// A name that is given again belongs to another region: its old addresses are stale, here and at
/// a peer that has the new table.
#[test]
fn a_name_used_twice_is_two_regions() {
    let mut world = World::new(Delivery::default());
    let (_, old) = world.open(2, 2);
    assert_eq!(world.call(1, WordRequest::atomic(Kind::PutWord, old, 7u64)), Ok(0));
    world.parties[2].machine.unregister(old).unwrap();
    world.settle();
    let old_name = world.split.place(old).unwrap();
    let (mut again, mut others) = (None, 0);
    while again.is_none() {
        let (region, addr) = world.open(2, 2);
        if world.split.place(addr).unwrap().region == old_name.region {
            again = Some((region, addr));
        } else {
            world.parties[2].machine.unregister(addr).unwrap();
            world.settle();
            others += 1;
        }
    }
    let (region, new) = again.unwrap();
    assert_eq!(others, REGIONS - 1, "all other names came first");
    assert_eq!(world.split.place(new).unwrap().life, old_name.life + 1);
    for rank in [1, 2, 3] {
        let put = |addr, value: u64| WordRequest::atomic(Kind::PutWord, addr, value);
        assert_eq!(world.call(rank, put(new, 1)), Ok(0));
        assert_eq!(world.call(rank, put(old, 9)), Err(AddrError::StaleKey { addr: old }));
        let (of_old, of_new) = (Copy::new(world.starter(3, 0), old, 8), world.starter(0, 8));
        assert!(matches!(world.call(rank, of_old), Err(AddrError::StaleKey { .. })));
        assert_eq!(world.call(rank, Copy::new(of_new, new, 8)), Ok(0));
        assert_eq!(peek(world.parties[0].here, 2, &region, 0), 1);
    }
    let cache = world.parties[1].machine.cache();
    let stale = cache.hold::<0>(0, old, 8, Need::Read);
    assert!(stale.is_err(), "{stale:?}");
    assert_eq!(world.parties[2].machine.unregister(old), Err(AddrError::StaleKey { addr: old }));
    world.parties[2].machine.unregister(new).unwrap();
}

/// A region of 16 bytes has no 17th byte.
#[test]
fn a_table_admits_no_byte_beyond_a_region() {
    let mut world = World::new(Delivery::default());
    let (_, addr) = world.open(2, 2);
    assert_eq!(world.call(1, WordRequest::atomic(Kind::GetWord, addr, 0u64)), Ok(0));
    let cache = world.parties[1].machine.cache();
    for (offset, bytes, is_in) in
        [(0, 16, true), (8, 8, true), (15, 1, true), (0, 17, false), (9, 8, false), (16, 1, false)]
    {
        let at = world.split.add(addr, offset).unwrap();
        match cache.hold::<0>(0, at, bytes, Need::Read) {
            Ok(held) => {
                cache.release::<0>(0, held.slot);
                assert!(is_in, "{bytes} bytes at {offset}");
            }
            Err(miss) => {
                let error = AddrError::OutOfRange { addr: at, bytes, region_bytes: Some(16) };
                assert!(!is_in && miss == Miss::Refused(error), "{bytes} at {offset}: {miss:?}");
            }
        }
    }
}

/// Memory of this rank needs no copy of a table.
#[test]
fn own_memory_is_found_without_a_table() {
    let mut world = World::new(Delivery::default());
    let (_, from) = world.open(1, 2);
    let (region, to) = world.open(1, 2);
    assert_eq!(world.call(1, WordRequest::atomic(Kind::PutWord, from, 5u64)), Ok(0));
    assert_eq!(world.call(1, Copy::new(to, from, 16)), Ok(0));
    assert_eq!(peek(world.parties[0].here, 1, &region, 0), 5);
    assert_eq!(world.parties[1].machine.table_counts(), (0, 0));
}
