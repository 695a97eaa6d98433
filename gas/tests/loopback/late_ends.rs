//! The end of a command that comes after its place has been used again.

use super::*;

/// A source that was given up answers late, when the place of its command belongs to another
/// command: the second command continues. Its own end is reported.
fn late_end() -> [Option<MachineOutput>; 3] {
    let mut world = World::new(Delivery::default());
    let addrs: Vec<GlobalAddr> = (0..4).map(|rank| world.open(rank, 8).1).collect();
    let Party { machine, words, shape, .. } = &mut world.parties[0];
    let before = |name| shape.parts().into_iter().take_while(move |part| part.name != name);
    let end: u64 = before("ends of commands").map(|part| part.bytes).sum();
    // The command and its note arrive, and the source does nothing.
    let ask = |machine: &mut GlobalMachine<'_>, src: GlobalAddr| {
        let copy = Copy::new(addrs[2], src, 8);
        machine.try_issue(copy.into(), After::Nothing).unwrap();
        while let Some(out) = machine.poll_op() {
            machine
                .handle(MachineEvent::Completed { tag: out.op.tag, result: Ok(0) }, Instant::ZERO);
        }
    };
    let answer = |machine: &mut GlobalMachine<'_>, stamp: u64| {
        words[end as usize / 8].store(stamp << 32, Ordering::Relaxed);
        machine.handle(MachineEvent::Rang, Instant::ZERO);
        while machine.poll_op().is_some() {}
        machine.poll()
    };
    ask(machine, addrs[1]);
    machine.handle(MachineEvent::Lost(Rank(1)), Instant::ZERO);
    while machine.poll_op().is_some() {}
    let lost = machine.poll();
    ask(machine, addrs[3]);
    [lost, answer(machine, 1), answer(machine, 2)]
}

#[test]
fn a_late_end_of_a_command_is_ignored() {
    let [lost, late, right] = late_end();
    let rank = Rank(1);
    assert!(
        matches!(lost, Some(MachineOutput::Ended { result: Err(AddrError::PeerLost { rank: lost }), .. })
            if lost == rank)
    );
    assert_eq!(late, None);
    assert!(matches!(right, Some(MachineOutput::Ended { result: Ok(0), .. })));
}

#[test]
#[cfg(debug_assertions)]
fn accepting_a_late_end_is_caught() {
    let [_, late, _] = tsumugi_core::sync::with_mutant("gas_end_of_any_life", late_end);
    assert!(late.is_some());
}
