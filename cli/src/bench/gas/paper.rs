//! The paper's comparison table: global memory by explicit words of its users, by
//! pages that the system copies, and by this library, with the measurements of each.

use super::super::row::Row;

/// The table for the page size nearest to a page of the operating system; empty if
/// there are no such rows.
pub fn paper(rows: &[Row]) -> String {
    let of = |name: &str| {
        let rows = rows.iter().filter(|row| row.name == name && row.unit == "ns");
        rows.min_by_key(|row| row.number("page_bytes").unwrap_or_default().abs_diff(PAGE_BYTES))
    };
    let Some(raw) = of("raw_read") else { return String::new() };
    let ns = |name: &str| of(name).map(|row| row.summary.median);
    let shown = |name: &str| ns(name).map_or_else(|| "-".to_owned(), |ns| format!("{ns:.0} ns"));
    let (hit, miss) = (shown("checkout_hit"), shown("checkout_miss"));
    let (cached, uncached) = (shown("get_cached"), shown("get_uncached"));
    let own = shown("own");
    let bytes = raw.number("page_bytes").unwrap_or_default();
    let read = shown("raw_read");
    let times = match (ns("get_uncached"), ns("get_cached")) {
        (Some(uncached), Some(cached)) => uncached / cached,
        _ => return String::new(),
    };
    format!(
        "\n  the paper's table, {bytes} B        PGAS  DSM                       this\n\
         \x20 access cost clear     yes, {read:>9}  no, {hit} or {miss}  yes, {cached}\n\
         \x20 relocation                      no  yes, a copy at each miss  yes, {own}\n\
         \x20 metadata cache        yes, all is known     by the system  yes, {uncached} without: {times:.1} times\n\
         \x20 DSM: pages that are copied on a miss, here by checkout. In the paper an access\n\
         \x20 without the cache takes more than 10 times as long: the home's processor answers\n\
         \x20 by messages. Here a miss costs one or two more remote reads and atomics.\n"
    )
}

const PAGE_BYTES: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::super::super::row::tests::row;
    use super::*;

    #[test]
    fn the_columns_of_the_paper_have_the_measured_times() {
        let of = |name: &str, bytes: u64, median: f64| Row {
            params: format!("page_bytes={bytes} network=shm"),
            ..row("tsumugi", name, median)
        };
        let rows = [
            of("raw_read", 8, 10.0),
            of("raw_read", 4096, 60.0),
            of("get_cached", 4096, 70.0),
            of("get_uncached", 4096, 210.0),
            of("own", 4096, 400.0),
        ];
        let shown = paper(&rows);
        assert!(shown.contains("60 ns") && shown.contains("3.0 times"), "{shown}");
        assert!(shown.contains("no, - or -"), "{shown}");
        assert_eq!(paper(&[]), "");
    }
}
