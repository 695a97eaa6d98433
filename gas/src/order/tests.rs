//! Traces of a few operations, then random ones that are compared with a simple
//! model.

extern crate std;
use super::*;
use std::vec;
use std::vec::Vec;
use tsumugi_core::random::SplitMix64;

macro_rules! order {
    ($order:ident, $operations:expr, $conditions:expr) => {
        let (mut issued, mut edges) =
            (vec![Issued::FREE; $operations], vec![Edge::FREE; $conditions]);
        #[allow(unused_mut)]
        let mut $order = OpOrder::new(&mut issued, &mut edges);
    };
}

fn issue(order: &mut OpOrder<'_>, after: After<'_>) -> Handle {
    order.try_issue(after, false).unwrap()
}

/// All operations that may begin now.
fn ready(order: &mut OpOrder<'_>) -> Vec<Handle> {
    let mut found = Vec::new();
    while let Some(slot) = order.poll_ready() {
        found.push(order.handle(slot));
    }
    found
}

fn end(order: &mut OpOrder<'_>, handle: Handle) {
    order.end(handle.index());
}

#[test]
fn an_unordered_operation_does_not_wait() {
    order!(order, 8, 8);
    let slow = issue(&mut order, After::Nothing);
    let after = issue(&mut order, After::One(slow));
    let other = issue(&mut order, After::Nothing);
    let next = issue(&mut order, After::One(other));
    assert_eq!(ready(&mut order), [slow, other]);
    end(&mut order, other);
    assert_eq!(ready(&mut order), [next], "the operation does not wait for the slow one");
    assert!(order.has_ended(other) && !order.has_ended_up_to(other));
    end(&mut order, slow);
    assert_eq!(ready(&mut order), [after]);
    assert!(order.has_ended_up_to(slow) && !order.has_ended_up_to(after));
}

#[test]
fn up_to_waits_for_all_earlier_operations_too() {
    order!(order, 8, 8);
    let [a, b, c] = [(); 3].map(|()| issue(&mut order, After::Nothing));
    let one = issue(&mut order, After::One(c));
    let upto = issue(&mut order, After::UpTo(c));
    assert_eq!(ready(&mut order), [a, b, c]);
    end(&mut order, c);
    assert_eq!(ready(&mut order), [one]);
    end(&mut order, a);
    assert_eq!(ready(&mut order), []);
    // `UpTo` an operation that has ended still waits for the operations before it.
    let late = issue(&mut order, After::UpTo(c));
    assert_eq!(ready(&mut order), []);
    end(&mut order, b);
    assert_eq!(ready(&mut order).len(), 2);
    assert!(!order.has_ended(upto) && !order.has_ended(late));
}

#[test]
fn after_all_waits_for_the_operations_issued_before() {
    order!(order, 8, 8);
    let a = issue(&mut order, After::Nothing);
    let all = issue(&mut order, After::All);
    let b = issue(&mut order, After::Nothing);
    assert_eq!(ready(&mut order), [a, b]);
    end(&mut order, a);
    assert_eq!(ready(&mut order), [all], "b was issued later");
    assert!(!order.has_ended(Handle::ALL));
    end(&mut order, b);
    end(&mut order, all);
    assert!(order.has_ended(Handle::ALL) && order.has_ended(Handle::NULL));
    let free = issue(&mut order, After::All);
    assert_eq!(ready(&mut order), [free]);
}

#[test]
fn a_set_is_waited_for_until_its_last_operation() {
    order!(order, 8, 8);
    let [a, b, c] = [(); 3].map(|()| issue(&mut order, After::Nothing));
    ready(&mut order);
    end(&mut order, b);
    let set = issue(&mut order, After::Each(&[a, b, c, a]));
    end(&mut order, c);
    assert_eq!(ready(&mut order), []);
    end(&mut order, a);
    assert_eq!(ready(&mut order), [set]);
}

#[test]
fn a_continuation_waits_for_the_last_operation_of_the_same_ranks_or_for_all() {
    order!(order, 8, 8);
    let a = issue(&mut order, After::Nothing);
    let b = issue(&mut order, After::Nothing);
    let same = order.try_issue(After::Cont, true).unwrap();
    ready(&mut order);
    end(&mut order, b);
    assert_eq!(ready(&mut order), [same], "the operation does not wait for {a}");
    let other = order.try_issue(After::Cont, false).unwrap();
    end(&mut order, same);
    assert_eq!(ready(&mut order), []);
    end(&mut order, a);
    assert_eq!(ready(&mut order), [other]);
    // The operations for which the one before waited have ended, too.
    end(&mut order, other);
    let free = order.try_issue(After::Cont, true).unwrap();
    assert_eq!(ready(&mut order), [free]);
}

#[test]
fn a_full_table_refuses_an_operation() {
    order!(order, 2, 1);
    let a = issue(&mut order, After::Nothing);
    let b = issue(&mut order, After::One(a));
    assert_eq!(order.try_issue(After::Nothing, false), Err(Full::Operations));
    end(&mut order, a);
    ready(&mut order);
    let c = issue(&mut order, After::One(b));
    end(&mut order, b);
    assert_eq!(order.try_issue(After::Each(&[c]), false).map(|_| ()), Ok(()));
    assert_ne!(a.index(), usize::MAX);
}

#[test]
fn an_operation_with_too_many_conditions_is_refused() {
    order!(order, 4, 1);
    let [a, b] = [(); 2].map(|()| issue(&mut order, After::Nothing));
    assert_eq!(order.try_issue(After::Each(&[a, b]), false), Err(Full::Conditions));
    let one = issue(&mut order, After::One(a));
    assert_eq!(order.try_issue(After::One(b), false), Err(Full::Conditions));
    ready(&mut order);
    end(&mut order, a);
    assert_eq!(ready(&mut order), [one]);
}

#[test]
fn handles_equal_those_of_acp() {
    assert_eq!(Handle::NULL.as_order(), After::Nothing);
    assert_eq!(Handle::from_bits(u64::MAX).as_order(), After::All);
    assert_eq!(Handle::from_bits(u64::MAX - 1).as_order(), After::Cont);
    order!(order, 2, 2);
    let first = issue(&mut order, After::Nothing);
    assert!(first > Handle::NULL && first < Handle::CONT);
    assert_eq!(first.as_order(), After::UpTo(first));
}

/// Random operations, compared with a list that is searched.
fn random(seed: u64) {
    order!(order, 16, 24);
    let mut random = SplitMix64::new(seed);
    let mut draw = |bound: u64| random.below(bound);
    // The issued operations, each with the operations for which it still waits; and the running
    // operations.
    let mut waits: Vec<(Handle, Vec<Handle>)> = Vec::new();
    let (mut runs, mut all): (Vec<Handle>, Vec<Handle>) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        if draw(2) == 0 {
            let live: Vec<Handle> =
                waits.iter().map(|(handle, _)| *handle).chain(runs.iter().copied()).collect();
            let pick = |at: u64| all.get((all.len() as u64).saturating_sub(1 + at) as usize);
            let named = pick(draw(6)).copied().unwrap_or(Handle::NULL);
            let other = pick(draw(6)).copied().unwrap_or(Handle::NULL);
            let set = [named, other];
            let (after, expected): (After<'_>, Vec<Handle>) = match draw(5) {
                0 => (After::Nothing, vec![]),
                1 => (After::One(named), live.iter().filter(|h| **h == named).copied().collect()),
                2 => {
                    (After::Each(&set), live.iter().filter(|h| set.contains(h)).copied().collect())
                }
                3 => (After::UpTo(named), live.iter().filter(|h| **h <= named).copied().collect()),
                _ => (After::All, live.clone()),
            };
            if let Ok(handle) = order.try_issue(after, false) {
                all.push(handle);
                waits.push((handle, expected));
            }
        } else if !runs.is_empty() {
            let ended = runs.swap_remove(draw(runs.len() as u64) as usize);
            end(&mut order, ended);
            assert!(order.has_ended(ended));
            waits.iter_mut().for_each(|(_, waits)| waits.retain(|handle| *handle != ended));
        }
        let began = ready(&mut order);
        for handle in &began {
            let at = waits.iter().position(|(other, _)| other == handle).expect("issued, once");
            let (_, left) = waits.swap_remove(at);
            assert!(left.is_empty(), "{handle} began before {left:?} had ended");
            runs.push(*handle);
        }
        assert!(waits.iter().all(|(_, left)| !left.is_empty()), "{waits:?}: may begin");
    }
}

#[test]
fn random_operations_keep_their_order() {
    (1..500).for_each(random);
}

#[test]
#[cfg(debug_assertions)]
fn an_order_that_forgets_earlier_operations_is_caught() {
    let caught = tsumugi_core::sync::with_mutant("gas_order_one_for_all", || {
        (1..50).any(|seed| std::panic::catch_unwind(|| random(seed)).is_err())
    });
    assert!(caught, "the mutant was not caught");
}
