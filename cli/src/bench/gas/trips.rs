//! The time of an uncached get relative to a cached get: it grows with the number of
//! round trips, unless the bytes take most of the time.

use super::bars::bytes_take;
use crate::bench::row::Row;
use crate::text;

/// The counts and times for one page size.
struct TripsRow {
    bytes: u64,
    /// The agent that serves the home's words.
    by: &'static str,
    /// Operations on the network of a cached get and of an uncached get; `None` if
    /// there is no network.
    counted: Option<[f64; 2]>,
    /// The time of an uncached get over that of a cached get.
    times: f64,
    /// The part of a cached get's time that its bytes take beyond those of the
    /// smallest page.
    share: f64,
}

/// A line for each page size; empty if there are no such rows.
pub fn trips(rows: &[Row]) -> String {
    let lines = lines(rows);
    if lines.is_empty() {
        return String::new();
    }
    let header = [
        "page",
        "agent",
        "cached trips",
        "uncached trips",
        "ratio",
        "ratio of times",
        "within 25 %",
        "share of bytes",
    ];
    let table = text::table(&header, lines.iter().map(TripsRow::row));
    let holds = |by: &str| {
        let of = lines.iter().filter(|line| line.by == by);
        let holds = of.filter(|line| line.times >= TIMES && line.is_near() != Some(false));
        match holds.map(|line| line.bytes.to_string()).collect::<Vec<_>>() {
            sizes if sizes.is_empty() => "for no size".to_owned(),
            sizes => format!("at {} B", sizes.join(", ")),
        }
    };
    let asks_device = lines.iter().any(|line| line.by == DEVICE);
    let holds = match asks_device {
        true => format!("{}, by a device {}", holds(PROCESSOR), holds(DEVICE)),
        false => holds(PROCESSOR),
    };
    let mut notes = format!(
        "  trips: operations on the network (several for a large page); on one node they are\n\
         \x20 loads, which are not counted. The ratio of the times is at least {TIMES}, and within\n\
         \x20 25 % of the ratio of the trips where these are counted, {holds}.\n\
         \x20 The paper has a ratio of more than {PAPER}: there the home's program answers a miss,\n\
         \x20 between its own work. Here the network answers, in a trip like any other, so the\n\
         \x20 times have the ratio of the trips. Over a network that may tear words (tcp,\n\
         \x20 Soft-RoCE), a thread of the home reads them; if the thread must be woken first,\n\
         \x20 that takes most of the time.\n"
    );
    if asks_device {
        notes += "  agent device: the network device reads and changes the words of the directory\n\
                  \x20 (Directory::Device), and no thread of the home takes part.\n";
    }
    if let Some(line) = lines.iter().find(|line| line.times < TIMES && line.share > 0.5) {
        let TripsRow { bytes, times, share, .. } = line;
        notes += &format!(
            "  At {bytes} B the transfer of the bytes takes {:.0} % of a cached get. An uncached\n\
             \x20 get takes {times:.2} times as long; a ratio of {TIMES} is not reachable from this\n\
             \x20 size on.\n",
            share * 100.0,
        );
    }
    format!("\n{table}{notes}")
}

fn lines(rows: &[Row]) -> Vec<TripsRow> {
    let of = |name: &str, bytes: u64| {
        let is_it = |row: &&Row| row.name == name && row.number("page_bytes") == Some(bytes);
        rows.iter().find(is_it)
    };
    let counted = |name: &str, bytes| of(name, bytes).map(|row| row.summary.median);
    let line = |uncached: &Row| {
        let bytes = uncached.number("page_bytes")?;
        let cached = of("get_cached", bytes)?;
        Some(TripsRow {
            bytes,
            by: if uncached.name == "get_uncached" { PROCESSOR } else { DEVICE },
            counted: counted("wire_get_cached", bytes)
                .zip(counted(&format!("wire_{}", uncached.name), bytes))
                .map(|(cached, uncached)| [cached, uncached]),
            times: uncached.summary.median / cached.summary.median,
            share: bytes_take(rows, cached),
        })
    };
    let asked = rows.iter().filter(|row| row.name.starts_with("get_uncached"));
    asked.filter_map(line).collect()
}

impl TripsRow {
    fn ratio(&self) -> Option<f64> {
        self.counted.map(|[cached, uncached]| uncached / cached)
    }

    /// Whether the times grow as the number of trips does.
    fn is_near(&self) -> Option<bool> {
        self.ratio().map(|ratio| (self.times / ratio - 1.0).abs() <= NEAR)
    }

    fn row(&self) -> Vec<String> {
        let shown = |number: Option<f64>| number.map_or("-".to_owned(), |is| format!("{is:.2}"));
        let near = self.is_near().map_or("-", |is_near| if is_near { "yes" } else { "no" });
        vec![
            format!("{} B", self.bytes),
            self.by.to_owned(),
            shown(self.counted.map(|[cached, _]| cached)),
            shown(self.counted.map(|[_, uncached]| uncached)),
            shown(self.ratio()),
            shown(Some(self.times)),
            near.to_owned(),
            format!("{:.0} %", self.share * 100.0),
        ]
    }
}

const PROCESSOR: &str = "processor";
const DEVICE: &str = "device";
const NEAR: f64 = 0.25;
const TIMES: f64 = 2.0;
/// The factor that the paper reports.
const PAPER: u32 = 10;

#[cfg(test)]
mod tests {
    use super::super::super::row::tests::row;
    use super::*;

    #[test]
    fn times_are_compared_with_the_counted_trips() {
        let of = |name: &str, bytes: u64, median: f64| Row {
            params: format!("page_bytes={bytes} network=tcp pages=64"),
            ..row("tsumugi", name, median)
        };
        let rows = [
            of("get_cached", 8, 10.0),
            of("get_uncached", 8, 28.0),
            of("wire_get_cached", 8, 1.0),
            of("wire_get_uncached", 8, 3.0),
            of("get_cached", 1 << 20, 500.0),
            of("get_uncached", 1 << 20, 550.0),
            of("wire_get_cached", 1 << 20, 2.0),
            of("wire_get_uncached", 1 << 20, 4.0),
        ];
        let shown = trips(&rows);
        let line = |of: &str| shown.lines().find(|line| line.contains(of)).unwrap();
        let cells = |of| line(of).split_whitespace().collect::<Vec<_>>();
        assert_eq!(
            cells(" 8 B ")[2..],
            ["processor", "1.00", "3.00", "3.00", "2.80", "yes", "0", "%"],
            "{shown}"
        );
        assert!(cells("1048576 B ").contains(&"no"), "{shown}");
        assert!(shown.contains("at 8 B") && shown.contains("98 % of a cached get"), "{shown}");
        let device = [
            of("get_cached", 8, 10.0),
            of("wire_get_cached", 8, 1.0),
            of("get_uncached", 8, 48.0),
            of("wire_get_uncached", 8, 2.0),
            of("get_uncached_device", 8, 21.0),
            of("wire_get_uncached_device", 8, 2.0),
        ];
        let by_device = trips(&device);
        let line = by_device.lines().find(|line| line.contains(" device ")).unwrap();
        assert!(line.contains("2.10") && line.contains("yes"), "{by_device}");
        assert!(by_device.contains("for no size, by a device at 8 B"), "{by_device}");
        let near = trips(&rows[..2]);
        assert!(near.contains("  8 B") && near.contains("at 8 B"), "{near}");
        assert_eq!(trips(&rows[..1]), "");
    }
}
