//! Which copies are passed to another rank, the rest of those that were cut off, and words that
//! are not commands.

use super::copies::trips;
use super::rank::{Party, Room, Sizes};
use tsumugi_core::sim::{Net, SimConfig};
use tsumugi_gas::address::GlobalAddr;
use tsumugi_gas::control::ControlShape;
use tsumugi_gas::machine::MachineEvent;
use tsumugi_gas::order::After;
use tsumugi_gas::request::Copy;

/// The caller carries copies of one block, of a size in between, and from one rank to another; all
/// other copies are passed to the source.
#[test]
fn copies_of_medium_size_are_carried_by_the_caller() {
    let net = Net::new(SimConfig::calm(3, 0));
    let sizes = Sizes { joined_bytes_max: 128, carried_bytes_max: 1024, ..Sizes::new(3) };
    let mut rooms: Vec<Room> = (0..3).map(|_| Room::new(&sizes)).collect();
    let mut parties: Vec<Party<'_>> = rooms
        .iter_mut()
        .enumerate()
        .map(|(rank, room)| Party::new(&net, rank as u32, &sizes, room))
        .collect();
    let at: Vec<GlobalAddr> = parties.iter_mut().map(|party| party.open(1 << 12).1).collect();
    let inside = parties[0].machine.cache().split().add(at[1], 2048).unwrap();
    for (copy, is_asked) in [
        (Copy::new(at[2], at[1], 129), false),
        (Copy::new(at[2], at[1], 1024), false),
        (Copy::new(at[2], at[1], 128), true),
        (Copy::new(at[2], at[1], 1025), true),
        (Copy::new(at[2], at[1], 200).strided(2, 200, 200), true),
        (Copy::new(inside, at[1], 200), true),
    ] {
        let before = parties[1].machine.hints();
        trips(&mut parties, &net, copy);
        assert_eq!(parties[1].machine.hints() > before, is_asked, "{copy:?}");
    }
}

/// A machine starts in a clean state, whatever another machine has left in its tables.
#[test]
fn a_machine_ignores_the_old_content_of_its_tables() {
    let sizes = Sizes::new(3);
    let sizes = Sizes { shape: ControlShape { commands: 1, ..sizes.shape }, ..sizes };
    let mut rooms: Vec<Room> = (0..3).map(|_| Room::new(&sizes)).collect();
    for events in 0..20 {
        for is_cut_off in [true, false] {
            rooms.iter_mut().for_each(Room::empty);
            let net = Net::new(SimConfig::calm(3, 0));
            let mut parties: Vec<Party<'_>> = rooms
                .iter_mut()
                .enumerate()
                .map(|(rank, room)| Party::new(&net, rank as u32, &sizes, room))
                .collect();
            let at: Vec<GlobalAddr> = parties.iter_mut().map(|party| party.open(64).1).collect();
            let copy = Copy::new(at[2], at[1], 64);
            if !is_cut_off {
                trips(&mut parties, &net, copy);
                continue;
            }
            parties[0].machine.try_issue(copy.into(), After::Nothing).unwrap();
            parties[0].pump();
            for (rank, event) in (0..events).map_while(|_| net.step()) {
                parties[rank.0 as usize].on_event(event);
            }
        }
    }
}

/// Words for no operation are counted and have no other effect.
#[test]
fn words_for_no_operation_are_dropped() {
    let net = Net::new(SimConfig::calm(2, 0));
    let sizes = Sizes::new(2);
    let mut room = Room::new(&sizes);
    let mut party = Party::new(&net, 0, &sizes, &mut room);
    for (name, count) in [("ends of commands", 1), ("notes", 2)] {
        let parts = sizes.shape.parts();
        let before = parts.iter().take_while(|part| part.name != name);
        let offset = before.map(|part| part.bytes).sum();
        party.node.store(party.control, offset, u64::MAX).unwrap();
        let now = party.node.now();
        party.machine.handle(MachineEvent::Rang, now);
        party.pump();
        assert_eq!(party.machine.dropped(), count, "{name}");
        assert_eq!(party.node.load(party.control, offset), Ok(0), "{name}");
    }
}
