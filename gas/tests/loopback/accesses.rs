//! Copies, atomics and their errors, and the order of operations.

use super::*;

/// Ranks publish the addresses of their memory in starter memory; then one rank moves bytes
/// between two others and raises a flag at a fourth.
#[test]
fn addresses_are_exchanged_in_starter_memory_and_bytes_move_between_any_ranks() {
    each_delivery(|world| {
        let opened: Vec<(Region, GlobalAddr)> = (0..4).map(|rank| world.open(rank, 32)).collect();
        for (rank, (_, addr)) in opened.iter().enumerate() {
            let at = world.starter(0, 8 * rank as u64);
            let told = WordRequest::atomic(Kind::PutWord, at, addr.to_bits());
            assert_eq!(world.call(rank, told), Ok(0));
        }
        let found: Vec<GlobalAddr> = (0..4)
            .map(|rank| {
                let word = WordRequest::atomic(Kind::GetWord, world.starter(0, 8 * rank), 0u64);
                GlobalAddr::from_bits(world.call(3, word).unwrap())
            })
            .collect();
        assert_eq!(found, opened.iter().map(|(_, addr)| *addr).collect::<Vec<_>>());

        let split = world.split;
        let word = |rank: usize, index| {
            split.index(GlobalPtr::<u64>::new(found[rank]), index).unwrap().addr()
        };
        for index in 0..8 {
            let put = WordRequest::atomic(Kind::PutWord, word(1, index), 100 + index as u64);
            assert_eq!(world.call(3, put), Ok(0));
        }
        // Rank 3 has every second word of rank 1 copied to rank 2, backwards, and then the flag at
        // rank 0 raised.
        let copy = Copy::new(word(2, 7), word(1, 0), 8).strided(4, -16, 16);
        assert_eq!(world.call(3, copy.then_add(word(0, 5), 9)), Ok(0));
        let here = world.parties[0].here;
        let copied: Vec<u64> = (0..8).map(|index| peek(here, 2, &opened[2].0, index)).collect();
        assert_eq!(copied, [0, 106, 0, 104, 0, 102, 0, 100]);
        assert_eq!(peek(here, 0, &opened[0].0, 5), 9);
    });
}

/// A command to other ranks waits for the operations before it, and a flush for all.
#[test]
fn a_chain_through_three_ranks_keeps_its_order() {
    each_delivery(|world| {
        let addrs: Vec<GlobalAddr> = (0..4).map(|rank| world.open(rank, 8).1).collect();
        let put = WordRequest::atomic(Kind::PutWord, addrs[1], 42u64);
        let mut last = world.issue(0, put, After::Nothing);
        for (dst, src) in [(2, 1), (3, 2), (0, 3)] {
            last = world.issue(0, Copy::new(addrs[dst], addrs[src], 8), After::One(last));
        }
        let flush = world.parties[0].machine.try_flush_all().unwrap();
        let of_rank = world.parties[0].machine.try_flush(Rank(2)).unwrap();
        assert!(!world.parties[0].machine.has_ended(flush));
        world.settle();
        for handle in [last, flush, of_rank] {
            assert_eq!(world.outcome(0, handle), Ok(0));
        }
        assert!(world.parties[0].machine.has_ended_up_to(Handle::ALL));
        assert_eq!(world.call(0, WordRequest::atomic(Kind::GetWord, addrs[0], 0u64)), Ok(42));
    });
}

#[test]
fn atomics_follow_the_width_of_their_word() {
    let mut world = World::new(Delivery::default());
    let (_, wide) = world.open(2, 2);
    let narrow = world.split.add(wide, 12).unwrap();
    let mut on =
        |kind, operand: u64| world.call(1, WordRequest::atomic(kind, wide, operand)).unwrap();
    assert_eq!(on(Kind::FetchAdd, 5), 0);
    assert_eq!(on(Kind::FetchXor, 6), 5);
    assert_eq!(on(Kind::FetchOr, 8), 3);
    assert_eq!(on(Kind::FetchAnd, 9), 11);
    assert_eq!(on(Kind::Swap, u64::MAX), 9);
    let swap = WordRequest::compare_swap(wide, u64::MAX, 1u64);
    assert_eq!((world.call(1, swap), world.call(1, swap)), (Ok(u64::MAX), Ok(1)));
    let add = WordRequest::atomic(Kind::FetchAdd, narrow, -1i32);
    assert_eq!((world.call(1, add), world.call(1, add)), (Ok(0), Ok(0xffff_ffff)));
    let swap = WordRequest::compare_swap(narrow, -2i32, 7i32).notifying();
    assert_eq!(world.call(1, swap), Ok(0xffff_fffe));
    let odd = world.split.add(wide, 2).unwrap();
    let odd_add = WordRequest::atomic(Kind::FetchAdd, odd, 1u32);
    assert_eq!(world.call(1, odd_add), Err(AddrError::Unaligned { addr: odd, align: 4 }));
}

#[test]
fn a_wrong_access_is_an_error_with_its_address() {
    let mut world = World::new(Delivery::default());
    let (region, addr) = world.open(2, 2);
    let last = world.split.add(addr, 15).unwrap();
    let own = world.starter(1, 0);
    let beyond = |region_bytes| AddrError::OutOfRange { addr: last, bytes: 2, region_bytes };
    for (copy, error) in [
        (Copy::new(GlobalAddr::NULL, own, 8), AddrError::Nowhere { addr: GlobalAddr::NULL }),
        (Copy::new(last, own, 2), beyond(Some(16))),
        (Copy::new(own, last, 2), beyond(Some(16))),
        // A command to rank 3 does this copy; the code of its error has no length.
        (Copy::new(last, world.starter(3, 0), 2), beyond(None)),
    ] {
        assert_eq!(world.call(1, copy), Err(error));
    }
    let other = world.split.place(addr).unwrap();
    let unknown = world.split.addr(AddressParts { region: 200, ..other }).unwrap();
    let read = WordRequest::atomic(Kind::GetWord, unknown, 0u64);
    assert_eq!(world.call(1, read), Err(AddrError::StaleKey { addr: unknown }));
    let far = world.split.addr(AddressParts { rank: Rank(5), ..other }).unwrap();
    let read = WordRequest::atomic(Kind::GetWord, far, 0u64);
    assert_eq!(world.call(1, read), Err(AddrError::Nowhere { addr: far }));

    assert_eq!(world.call(1, Copy::new(addr, own, 16)), Ok(0));
    world.parties[2].machine.unregister(addr).unwrap();
    world.settle();
    let retired = world.parties[2].outs.iter().any(|out| matches!(out, MachineOutput::Retired(_)));
    assert!(retired && world.parties[2].machine.names() == 0);
    assert_eq!(
        world.call(1, Copy::new(addr, own, 16)),
        Err(AddrError::StaleKey { addr }),
        "stale, not an error of the device for {region:?}"
    );
}

/// The last word of a region can be a flag as any other.
#[test]
fn a_flag_may_be_the_last_word_of_a_region() {
    let mut world = World::new(Delivery::default());
    let (_, from) = world.open(1, 1);
    let (region, to) = world.open(2, 2);
    let last = world.split.add(to, 8).unwrap();
    assert_eq!(world.call(1, Copy::new(to, from, 8).then_add(last, 3)), Ok(0));
    assert_eq!(peek(world.parties[0].here, 2, &region, 1), 3);
}

/// A flush of one rank waits for the operations on that rank: not for puts to another, nor for a
/// fence that waits for those.
#[test]
fn a_flush_of_one_rank_waits_for_no_other() {
    let mut world = World::new(Delivery::default());
    let (_, addr) = world.open(1, 1);
    let put = world.issue(0, WordRequest::atomic(Kind::PutWord, addr, 1u64), After::Nothing);
    let all = world.parties[0].machine.try_flush_all().unwrap();
    let one = world.parties[0].machine.try_flush(Rank(2)).unwrap();
    world.parties[0].pump();
    assert_eq!(world.outcome(0, one), Ok(0));
    assert!(!world.parties[0].machine.has_ended(all));
    world.settle();
    assert_eq!((world.outcome(0, put), world.outcome(0, all)), (Ok(0), Ok(0)));
}
