//! Cells that no correct rank would write.

extern crate std;

use super::harness::{Sizes, World, memory, tables};
use crate::am::cell::{Defect, Inline, LaneCell};
use crate::am::lanes::AmLane;
use crate::am::{AmEvent, AmOutput, AmShape, CallPayload, HandlerAnswer, HandlerId, RequestBody};
use crate::mem::{PeerIndex, Rank};
use crate::random::SplitMix64;
use crate::sync::mapped::Ordering;
use std::vec::Vec;

const SIZES: Sizes = Sizes { ranks: 2, cells: 4, calls: 4, staging: 6, landings: 2 };

/// Cells have a valid check and arbitrary content: the machine does not panic, reads nothing
/// outside, and still serves the other rank.
#[test]
fn arbitrary_cells_of_a_peer_do_no_harm() {
    let shape = AmShape { peers: 2, cells: 4, later_cells: 4 };
    for seed in 0..400 {
        let mut draw = SplitMix64::new(seed);
        let memory = memory(SIZES);
        let mut tables = tables(SIZES);
        let mut world = World::new(SIZES, &memory, &mut tables);
        for round in 0..12u32 {
            for lane in [AmLane::Request, AmLane::Reply] {
                let len = draw.below(40) * draw.below(6);
                let bytes: Vec<u8> = (0..len).map(|_| draw.next() as u8).collect();
                let cell = LaneCell {
                    kind: draw.below(7) as u8,
                    status: draw.next() as u8,
                    handler: draw.next() as u32,
                    token: draw.next() >> draw.below(64),
                    ack: draw.next() as u32 >> draw.below(32),
                    body: Inline::new(&bytes).unwrap(),
                };
                let at = shape.cell(lane, PeerIndex(1), round) / 8;
                cell.write(&memory[0].lanes[at..at + 32], round, Defect::None);
            }
            // More bells than cells, and notices with any count.
            memory[0].lanes[0].store(draw.next(), Ordering::Relaxed);
            let (notice, _) = shape.notice(PeerIndex(1));
            memory[0].lanes[notice / 8].store(draw.next(), Ordering::Relaxed);
            memory[0].lanes[shape.credit(PeerIndex(1)) / 8].store(draw.next(), Ordering::Relaxed);
            world.machines[0].handle(AmEvent::Rang, world.now);
            serve(&mut world);
            if draw.chance(333) {
                let payload = CallPayload::Inline(b"x");
                let _ = world.machines[0].call(PeerIndex(1), HandlerId(0), payload, None);
            }
        }
        // The rank can still call itself.
        while world.machines[0].check_room(PeerIndex(0), false).is_err() {
            serve(&mut world);
        }
        world.machines[0].cast(PeerIndex(0), HandlerId(77), b"still here").unwrap();
        assert!(serve(&mut world), "seed {seed}");
    }
}

/// Does all work of rank 0; returns whether a cast for 77 came from itself.
fn serve(world: &mut World<'_>) -> bool {
    let mut came = false;
    for _ in 0..6 {
        while let Some(out) = world.machines[0].poll() {
            let AmOutput::Run(request) = out else { continue };
            came |= request.from == Rank(0) && request.handler == HandlerId(77);
            if let RequestBody::Landed(landed) = request.body {
                assert!(landed.index() < SIZES.landings);
                world.machines[0].release(landed);
            }
            if let Some(waiting) = request.reply_to {
                world.machines[0].reply(waiting, &HandlerAnswer::UnknownHandler).unwrap();
            }
        }
        world.post(0);
        world.deliver();
        world.machines[0].handle(AmEvent::Rang, world.now);
    }
    came
}
