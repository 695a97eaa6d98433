//! Every variable that the code names is described.

use super::misspelt::misspelt;
use super::names::{OF_LAUNCHERS, OF_USERS};
use super::*;
use crate::Config;
use crate::config::{COLLECTIVES, SPIN_ROUNDS, WORKERS, forced};
use std::fs;
use std::path::Path;

/// The names of all variables in a source file.
fn names_in(path: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = fs::read_to_string(&path).unwrap();
    let is_of_name = |c: char| c.is_ascii_uppercase() || c == '_';
    let names = text.match_indices("TSUMUGI_").map(|(at, _)| {
        let rest = &text[at..];
        rest[..rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())].to_owned()
    });
    names.filter(|name| !name.ends_with('_')).collect()
}

#[test]
fn every_variable_is_listed() {
    let knobs = Config::default().knobs(2).unwrap();
    for path in ["src/config.rs", "pvas/src/config.rs", "backends/src/boot/env.rs"] {
        let names = names_in(path);
        assert!(names.len() > 4, "{path}: {names:?}");
        for name in names {
            assert!(knobs.iter().any(|knob| knob.name == name), "{path}: {name}");
        }
    }
}

#[test]
fn chosen_values_follow_the_configuration() {
    let config = Config::default().workers(3).spin(7);
    let knobs = config.knobs(1).unwrap();
    let chosen = |name| {
        let knob = knobs.iter().find(|knob| knob.name == name).unwrap();
        knob.chosen.clone()
    };
    assert_eq!((chosen(WORKERS), chosen(SPIN_ROUNDS)), (Some("3".into()), Some("7".into())));
    assert!(Config::default().knobs(0).is_err());
}

#[test]
fn a_wrong_algorithm_is_refused_with_those_that_there_are() {
    for (text, word, known) in [
        ("broadcast=tree,broadcast=chian", "broadcast=chian", "rows, tree, flat, chain, spread"),
        ("brodcast=tree", "brodcast=tree", "broadcast, reduce"),
        ("all=threes", "all=threes", "pairwise"),
        ("all=ring,", "\"all=ring,\"", "near.COLLECTIVE"),
    ] {
        let said = forced(text).unwrap_err().to_string();
        assert!(said.contains(COLLECTIVES) && said.contains(word), "{said}");
        assert!(said.contains(known), "{said}");
    }
    assert!(forced("all=tree,far.broadcast=chain,near.broadcast=auto").is_ok());
}

#[test]
fn a_misspelt_variable_is_reported_with_its_neighbour() {
    let report = |name| misspelt(name).unwrap_or_default();
    for (wrong, right) in [
        ("TSUMUGI_WORKRES", "TSUMUGI_WORKERS"),
        ("TSUMUGI_HEAP_BYTE", "TSUMUGI_HEAP_BYTES"),
        ("TSUMUGI_GRACE_MS", "TSUMUGI_GRACE_TIMEOUT"),
        ("TSUMUGI_SILENCE", "TSUMUGI_SILENCE_TIMEOUT"),
    ] {
        let said = report(wrong);
        assert!(said.contains(wrong) && said.contains(&format!("mean {right}?")), "{said}");
    }
    assert!(report("TSUMUGI_QWERTZ_UIOP").ends_with("tsumugi info --config lists all\n"));
    for name in [
        "TSUMUGI_WORKERS",
        "TSUMUGI_RANK",
        "TSUMUGI_SEED",
        "TSUMUGI_TEST_ANY",
        "TSUMUGI_MPICC",
        "PATH",
    ] {
        assert_eq!(report(name), "", "{name}");
    }
}

#[test]
fn every_group_has_its_variables_in_order() {
    let knobs = Config::default().knobs(1).unwrap();
    let mut groups: Vec<_> = knobs.iter().map(|knob| knob.group).collect();
    groups.dedup();
    assert_eq!(groups, KnobGroup::ALL);
}

#[test]
fn the_names_are_those_of_the_list() {
    let knobs = Config::default().knobs(1).unwrap();
    let of = |launcher| {
        let of_group =
            knobs.iter().filter(move |knob| (knob.group == KnobGroup::Launcher) == launcher);
        of_group.map(|knob| knob.name).collect::<Vec<_>>()
    };
    assert_eq!(of(false), OF_USERS);
    assert_eq!(of(true), OF_LAUNCHERS);
}
