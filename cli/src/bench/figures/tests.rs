use super::*;
use crate::bench::row::tests::row;
use crate::bench::row::{self, Row};
use std::path::PathBuf;

fn args(folder: PathBuf) -> FiguresArgs {
    FiguresArgs {
        paper: None,
        quick: true,
        ops: None,
        folder,
        peer: Vec::new(),
        lock_peer: Vec::new(),
    }
}

#[test]
fn each_experiment_has_its_measurement_and_its_sentences() {
    let args = args(PathBuf::new());
    let names: Vec<&str> = of_papers(&args, |one| one.measurements).map(|one| one.name).collect();
    for one in of_papers(&args, |one| one.experiments) {
        assert!(one.from.is_none_or(|from| names.contains(&from)), "{}", one.name);
        for sentence in [one.same, one.differs, one.shows] {
            assert!(
                sentence.ends_with('.') && !sentence.contains("  "),
                "{}: {sentence}",
                one.name
            );
        }
    }
    for name in names {
        assert!(
            of_papers(&args, |one| one.experiments).any(|one| one.from == Some(name)),
            "{name}"
        );
    }
}

#[test]
fn a_report_has_the_rows_that_are_there() {
    let folder = std::env::temp_dir().join(format!("tsumugi-figures-{}", std::process::id()));
    let args = args(folder.clone());
    fs::create_dir_all(folder.join("rows")).unwrap();
    let one = |threads: u64| Row {
        params: format!("threads={threads} bytes=8 path=offload"),
        ..row("tsumugi", "latency", 150.0)
    };
    // Without the end of the array: the measurement was killed.
    let rows = format!("[\n{},\n{}", row::json(&one(1)), row::json(&one(2)));
    fs::write(folder.join("rows/engine.json"), rows).unwrap();
    write(&report(&args, &BTreeMap::new()).unwrap(), &folder).unwrap();
    let html = fs::read_to_string(folder.join("report.html")).unwrap();
    for word in ["<svg", "150 ns", "2.813 us (Tofu)", "Not measured yet.", "&lt;"] {
        assert_eq!(html.contains(word), word != "&lt;", "{word}");
    }
    let json = fs::read_to_string(folder.join("report.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let first = &json["figures"][0];
    assert_eq!((&first["paper"], &first["name"]), (&"S0".into(), &"Figure 2".into()));
    assert_eq!(first["plots"][0]["series"][0]["points"][1][0], 2.0);
    fs::remove_dir_all(folder).unwrap();
}

/// So a measurement without rows of a figure is a failure.
#[test]
fn no_figure_with_a_command_has_rows_where_there_are_none() {
    let args = args(PathBuf::new());
    let one = Row {
        params: "threads=1 bytes=8 path=offload".to_owned(),
        ..row("tsumugi", "latency", 1.0)
    };
    for shown in of_papers(&args, |one| one.experiments).filter(|shown| shown.from.is_some()) {
        assert!(!shown.is_in(&[]), "{}", shown.name);
        if shown.paper == Paper::S0 {
            let is_it = ["Figure 2", "Figure 5a"].contains(&shown.name);
            assert_eq!(shown.is_in(std::slice::from_ref(&one)), is_it, "{}", shown.name);
        }
    }
}

#[test]
fn the_time_left_follows_the_pace() {
    assert_eq!((pace(0, 0), pace(30, 60), pace(120, 60)), (1.0, 0.5, 2.0));
}
