//! `tsumugi bench gas`: arrays with pages that move, beside raw reads of the same
//! memory.
//!
//! | row | what is measured |
//! |---|---|
//! | `raw_read` | a page's bytes by rank and region: no directory, nothing moves |
//! | `get_cached` | a page of an array, with its owner in this rank's location cache |
//! | `get_uncached` | the same, with a request to the home first, each time |
//! | `get_uncached_messages` | the same, with the home asked by messages: the paper's directory |
//! | `get_uncached_device` | the same, with atomics of the network's device on the home's words |
//! | `put_cached` | a page of an array, with its owner in this rank's location cache |
//! | `checkout_hit` | a page of which this rank keeps a copy |
//! | `checkout_miss` | the same, when the copy is out of date |
//! | `own` | a page that moves here from another rank, by each directory, while a number of other ranks read it |
//! | `own_beside_readers` | the same, of 35 ranks: beside 0, 1, 8 and 32 readers |
//! | `letters_own` | messages that the paper's directory sends for it |
//! | `wire_...` | operations that the same row gives to the network |
//!
//! Rank 0 works on pages that rank 2 owns and that have rank 1 as their home, each
//! page as a whole; a page of 8 bytes is one element. Reads and puts of one size
//! take turns. A rank with a cache of one page that visits several pages finds none
//! of them in the cache. The pages that `own` has brought go back between two
//! batches, and the way back is not counted.
//!
//! By default the three ranks are processes of this node. As ranks of a job on
//! several nodes they run where the job has placed them: `ci/netns.sh pages`.

mod bars;
mod paper;
mod trips;

pub use bars::bars;
pub use paper::paper;
pub use trips::trips;

use super::catalogue::Group;
use super::line::trip_ns;
use super::measured::{self, budget};
use super::plot::{Axis, Plot, Point, Series};
use super::row::Row;
use super::row_writer::RowWriter;
use super::sample::{Batch, Budget, Contender};
use crate::args::MeasureArgs;
use crate::failure::Failure;
use crate::summary::Summary;
use std::cell::RefCell;
use std::env;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;
use tsumugi::array::{ArrayError, ArrayOptions, Directory, Read};
use tsumugi::{Agent, Error, GlobalArray, Rank, Runtime, Shared};

/// Ranks of the job: one measures, the others are the home and the owner of the
/// pages.
pub const RANKS: u32 = 3;
const HOME: u32 = 1;
const OWNER: Rank = Rank(2);

/// The rows of this figure.
pub const CATALOGUE: &[Group] = &[
    Group {
        name: "access",
        rows: &[
            "raw_read",
            "get_cached",
            "get_uncached",
            BY_MESSAGES,
            BY_DEVICE,
            "put_cached",
            "checkout_hit",
            "checkout_miss",
        ],
    },
    Group { name: "relocation", rows: &["own"] },
    Group { name: "readers", rows: &[READERS] },
];

/// The number of ranks that measure these rows.
pub fn ranks(names: &[&str]) -> u32 {
    // The readers are ranks, too.
    if names == [READERS] { RANKS + 32 } else { RANKS }
}

const READERS: &str = "own_beside_readers";

/// The arrays with pages of one size, at all ranks.
struct Pages {
    /// The network between rank 0 and the owner.
    network: String,
    bytes: usize,
    /// The number of pages of each rank at first.
    count: usize,
    raw: Shared<u64>,
    known: GlobalArray<u64>,
    /// The same, with a location cache of one page.
    unknown: GlobalArray<u64>,
    /// The same, with atomics of the device on the directory, if there is a device
    /// for them.
    by_device: Option<GlobalArray<u64>>,
    /// The same, with copies that are kept.
    copied: GlobalArray<u64>,
    /// The same, with the paper's directory.
    posted: GlobalArray<u64>,
    /// The same, with a location cache of one page.
    posted_unknown: GlobalArray<u64>,
}

/// The work of each rank; rank 0 measures the rows `names`.
pub fn rank(
    rt: &Runtime,
    names: &[&'static str],
    measure: &MeasureArgs,
) -> Result<Vec<Row>, Failure> {
    if rt.size() < RANKS {
        return Err(Failure::Usage(format!("bench gas needs {RANKS} ranks, not {}", rt.size())));
    }
    let sizes = if measure.quick { QUICK_BYTES } else { PAGE_BYTES };
    let rows = match rt.rank() {
        Rank(0) => RowWriter::new(measure.json.as_deref(), measure.csv.as_deref())?,
        _ => RowWriter::silent(),
    };
    rows.progress.stage("page sizes", sizes.len() as u64);
    for (step, bytes) in (1..).zip(sizes) {
        let pages = Pages::new(rt, *bytes, &network(rt))?;
        if rt.rank() == Rank(0) {
            rows.write(pages.accesses(rt, names, measure)?)?;
        }
        rt.barrier()?;
        let readers: &[u32] = match names {
            [READERS] => &[0, 1, 8, 32],
            _ if names.contains(&"own") => &[0, 1],
            _ => &[],
        };
        for readers in readers {
            let directories = [Some(&pages.known), pages.by_device.as_ref(), Some(&pages.posted)];
            for array in directories.into_iter().flatten() {
                rows.write(pages.relocations(rt, budget(measure), *readers, array)?)?;
            }
        }
        rt.barrier()?;
        rows.progress.at(step);
    }
    rows.end()
}

impl Pages {
    /// Collective.
    fn new(rt: &Runtime, bytes: usize, network: &str) -> Result<Self, Error> {
        let (count, page_len) = ((BATCH_BYTES / bytes).clamp(2, PAGES_MAX), bytes / 8);
        let len = rt.size() as usize * count * page_len;
        // Room for all pages of all ranks, and for those that have just left.
        let room = 2 * RANKS * count as u32;
        let options = ArrayOptions::new().page_len(page_len).room(room);
        let by_device = options.known(1).directory(Directory::Device);
        let by_device = by_device.create(rt, len)?;
        let pages = Self {
            network: network.to_owned(),
            bytes,
            count,
            raw: rt.share(count * page_len)?,
            known: options.create(rt, len)?,
            unknown: options.known(1).create(rt, len)?,
            by_device: Some(by_device).filter(|array| array.agent() == Agent::Device),
            copied: options.create(rt, len)?,
            posted: options.directory(Directory::Messages).create(rt, len)?,
            posted_unknown: options.known(1).directory(Directory::Messages).create(rt, len)?,
        };
        if rt.rank() == OWNER {
            let all = [&pages.known, &pages.unknown, &pages.copied, &pages.posted];
            for array in all.into_iter().chain([&pages.posted_unknown]).chain(&pages.by_device) {
                array.own(pages.all()).map_err(Error::from)?;
            }
        }
        rt.barrier()?;
        Ok(pages)
    }

    fn params(&self) -> String {
        let Self { bytes, network, count, .. } = self;
        format!("page_bytes={bytes} network={network} pages={count}")
    }

    /// The elements of the pages that are measured.
    fn all(&self) -> Range<usize> {
        let first = HOME as usize * self.count * self.bytes / 8;
        first..first + self.count * self.bytes / 8
    }

    /// The start of each page, in the array or in the raw memory.
    fn starts(&self, first: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        let page_len = self.bytes / 8;
        (0..self.count).map(move |page| first + page * page_len)
    }

    /// How often a batch visits all pages: a batch of few short operations would be
    /// too short for the clock. If the arguments set a number of operations, the
    /// batches are short enough that there are several of them.
    fn turns(&self, measure: &MeasureArgs) -> usize {
        let asked = measure.ops.map_or(BATCH_OPS, |ops| ops as usize / BATCHES_MIN);
        let bytes = (BATCH_BYTES / self.bytes).max(1);
        (asked.min(BATCH_OPS) / self.count).clamp(1, bytes)
    }

    fn accesses(
        &self,
        rt: &Runtime,
        names: &[&'static str],
        measure: &MeasureArgs,
    ) -> Result<Vec<Row>, Failure> {
        let turns = self.turns(measure);
        let ops = (turns * self.count) as u64;
        let (theirs, raw) = (self.starts(self.all().start), self.starts(0));
        // One buffer for all rows, because the speed of a copy depends on its
        // destination.
        let into = RefCell::new(vec![0; self.bytes / 8]);
        let (page_len, wants) = (self.bytes / 8, |name| names.contains(&name));
        let value = vec![7; self.bytes / 8];
        let over = |starts: &_, turns, once: &mut dyn FnMut(usize) -> Result<u64, Error>| {
            all(starts, turns, once).map_err(Failure::from)
        };
        let contender = |name| {
            let system = if name == "raw_read" { "bare" } else { "tsumugi" };
            (name, system)
        };
        let mut raw_read = |start| {
            let at = self.raw.at(OWNER, start);
            match &mut into.borrow_mut()[..] {
                [_] => Ok(rt.get(at)?),
                page => Ok(rt.get_slice(at, page).map(|()| page[0])?),
            }
        };
        let mut get_cached = |start| Ok(read(&self.known, start, &mut into.borrow_mut())?);
        let mut get_uncached = |start| Ok(read(&self.unknown, start, &mut into.borrow_mut())?);
        let mut get_posted = |start| Ok(read(&self.posted_unknown, start, &mut into.borrow_mut())?);
        let mut get_uncached_device = |start| match &self.by_device {
            Some(array) => Ok(read(array, start, &mut into.borrow_mut())?),
            None => unreachable!("without a device this row is left out"),
        };
        let wants = |name| wants(name) && (name != BY_DEVICE || self.by_device.is_some());
        let mut put_cached = |start| match &value[..] {
            [value] => Ok(self.known.put(start, *value).map(|()| 1)?),
            page => Ok(self.known.put_slice(start, page).map(|()| 1)?),
        };
        let mut checkout_hit =
            |start| Ok(self.copied.checkout(start..start + page_len, Read).map(|page| page[0])?);
        let mut checkout_miss = |start| {
            self.known.acquire();
            Ok(self.known.checkout(start..start + page_len, Read).map(|page| page[0])?)
        };
        let mut wires = Vec::new();
        if let Some(counts) = rt.network_counts().filter(|_| self.network != "shm") {
            let mut before = counts.operations;
            let mut count = |name: &'static str, starts: &_, once: &mut dyn FnMut(_) -> _| {
                if wants(name) {
                    // After this pass the caches are filled.
                    over(starts, 1, once)?;
                    before = operations(rt);
                    over(starts, 1, once)?;
                    let each = (operations(rt) - before) as f64 / self.count as f64;
                    let (name, params) = (format!("wire_{name}"), self.params());
                    wires.extend(row(&name, params, "operations", &mut [each]));
                }
                Ok::<(), Failure>(())
            };
            count("raw_read", &raw, &mut raw_read)?;
            count("get_cached", &theirs, &mut get_cached)?;
            count("get_uncached", &theirs, &mut get_uncached)?;
            count(BY_MESSAGES, &theirs, &mut get_posted)?;
            count(BY_DEVICE, &theirs, &mut get_uncached_device)?;
            count("put_cached", &theirs, &mut put_cached)?;
        }
        let batches: [(_, Batch<'_>); 8] = [
            (contender("raw_read"), Box::new(|| over(&raw, turns, &mut raw_read))),
            (contender("get_cached"), Box::new(|| over(&theirs, turns, &mut get_cached))),
            (contender("get_uncached"), Box::new(|| over(&theirs, turns, &mut get_uncached))),
            (contender(BY_MESSAGES), Box::new(|| over(&theirs, turns, &mut get_posted))),
            (contender(BY_DEVICE), Box::new(|| over(&theirs, turns, &mut get_uncached_device))),
            (contender("put_cached"), Box::new(|| over(&theirs, turns, &mut put_cached))),
            (contender("checkout_hit"), Box::new(|| over(&theirs, turns, &mut checkout_hit))),
            (contender("checkout_miss"), Box::new(|| over(&theirs, turns, &mut checkout_miss))),
        ];
        let mut wanted: Vec<Contender<'_>> = batches
            .into_iter()
            .filter(|((name, _), _)| wants(name))
            .map(|((name, system), batch)| Contender { system, name, batch })
            .collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let measured = measured::measure("gas", &self.params(), budget(measure), ops, &mut wanted)?;
        Ok(measured.rows.into_iter().chain(wires).collect())
    }

    /// Called by all ranks: rank 0 brings the owner's pages, the owner takes them
    /// back, and `readers` other ranks read them in between. Rank 0 returns the
    /// rows.
    fn relocations(
        &self,
        rt: &Runtime,
        budget: Budget,
        readers: u32,
        array: &GlobalArray<u64>,
    ) -> Result<Vec<Row>, Failure> {
        let is_first = rt.rank() == Rank(0);
        // The home reads first, then the ranks that have no other role.
        let turn = match rt.rank() {
            Rank(0) | OWNER => None,
            Rank(HOME) => Some(0),
            Rank(rank) => Some(rank - OWNER.0),
        };
        let reads = turn.is_some_and(|turn| turn < readers);
        let (mut samples, start, mut letters, mut wire) = (Vec::new(), Instant::now(), 0, 0);
        loop {
            let is_over = match budget {
                // This includes the way back.
                Budget::Time(time) => start.elapsed() >= time,
                Budget::Operations(total) => (samples.len() * self.count) as u64 >= total,
            };
            if reads {
                let mut page = vec![0; self.bytes / 8];
                for start in self.starts(self.all().start) {
                    read(array, start, &mut page).map_err(Error::from)?;
                }
            }
            let goes_on = is_first && (samples.is_empty() || !is_over);
            // Rank 0 decides; the owner has all pages back by then.
            if rt.allgather(goes_on.into())?[0] == 0 {
                break;
            }
            let before = rt.sum(array.letters())?;
            if is_first {
                let (begin, before) = (Instant::now(), operations(rt));
                let moved = array.own(self.all()).map_err(Error::from)?;
                let took = begin.elapsed();
                assert_eq!(moved, self.count, "the owner had them all");
                wire += operations(rt) - before;
                samples.push(took.as_nanos() as f64 / moved as f64);
            }
            rt.barrier()?;
            letters += rt.sum(array.letters())? - before;
            if rt.rank() == OWNER {
                array.own(self.all()).map_err(Error::from)?;
            }
            // The next reads find the pages at the owner.
            rt.barrier()?;
        }
        let (moved, is_posted) = (samples.len() * self.count, letters > 0);
        let directory = match array.agent() {
            _ if is_posted => "messages",
            Agent::Device => "device",
            Agent::Cpu => "atomics",
        };
        let params = format!("{} readers={readers} directory={directory}", self.params());
        let own = row("own", params.clone(), "ns", &mut samples);
        let each = |count: u64| [count as f64 / moved.max(1) as f64];
        let letters = row("letters_own", params.clone(), "letters", &mut each(letters));
        let wire = row("wire_own", params, "operations", &mut each(wire));
        let letters = letters.filter(|_| is_first && is_posted);
        let wire = wire.filter(|_| is_first && self.network != "shm");
        Ok(own.into_iter().chain(letters).chain(wire).collect())
    }
}

/// A row of samples that rank 0 has counted or measured itself.
fn row(name: &str, params: String, unit: &str, samples: &mut [f64]) -> Option<Row> {
    let line_ns = if unit == "ns" && !samples.is_empty() { trip_ns() } else { None };
    Summary::of(samples).map(|summary| Row {
        figure: "gas".to_owned(),
        system: "tsumugi".to_owned(),
        name: name.to_owned(),
        params,
        unit: unit.to_owned(),
        summary,
        line_ns_before: line_ns,
        line_ns_after: line_ns,
    })
}

/// Each row by the page size, and the name of the figure: each network has a figure
/// of its own.
pub fn plot(rows: &[Row]) -> Option<(String, Plot)> {
    let mut series: Vec<Series> = Vec::new();
    for row in rows.iter().filter(|row| row.unit == "ns") {
        let (x, of) = (row.number("page_bytes")? as f64, &row.summary);
        let point = Point { x, y: of.median, low: of.low, high: of.high };
        let by = row.word("directory").map(|of| format!(" by {of}")).unwrap_or_default();
        let beside = row.word("readers").map(|of| format!(", {of} readers")).unwrap_or_default();
        let name = format!("{}{by}{beside}", row.name);
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name, points: vec![point] }),
        }
    }
    let network = rows.first()?.word("network").unwrap_or_default();
    let has_accesses = series.iter().any(|series| !series.name.starts_with("own "));
    let name = format!("{}_{network}", if has_accesses { "pages" } else { "own" });
    let plot = Plot {
        title: format!("A page of an array, {network}: home, requester and owner are three ranks"),
        x: Axis { name: "bytes of a page".to_owned(), is_log: true },
        y: Axis { name: "nanoseconds".to_owned(), is_log: true },
        series,
    };
    (!plot.series.is_empty()).then_some((name, plot))
}

/// Reads a page, or the single element that it consists of.
#[inline(never)]
fn read(array: &GlobalArray<u64>, start: usize, into: &mut [u64]) -> Result<u64, ArrayError> {
    match into {
        [_] => array.get(start),
        page => array.get_slice(start, page).map(|()| page[0]),
    }
}

/// The network between this rank and the owner.
fn network(rt: &Runtime) -> String {
    let said = |name| env::var(name).ok().filter(|said| said != "auto");
    let name = match rt.neighbours().any(|near| near == OWNER) {
        true => Some("shm".to_owned()),
        false => said("TSUMUGI_PROVIDER").or_else(|| said("TSUMUGI_NETWORK")),
    };
    name.as_deref().and_then(|name| name.split(';').next()).unwrap_or("far").to_owned()
}

fn operations(rt: &Runtime) -> u64 {
    rt.network_counts().unwrap_or_default().operations
}

fn all(
    starts: &(impl Iterator<Item = usize> + Clone),
    turns: usize,
    once: &mut dyn FnMut(usize) -> Result<u64, Error>,
) -> Result<u64, Error> {
    let mut sum = 0u64;
    for _ in 0..turns {
        for start in starts.clone() {
            sum = sum.wrapping_add(once(black_box(start))?);
        }
    }
    Ok(sum)
}

const BY_MESSAGES: &str = "get_uncached_messages";
const BY_DEVICE: &str = "get_uncached_device";
const PAGE_BYTES: &[usize] = &[8, 64, 512, 4096, 32_768, 262_144, 1 << 20];
const QUICK_BYTES: &[usize] = &[8, 4096, 1 << 20];
/// The bytes of pages of each rank, unless that would be too many or too few pages.
const BATCH_BYTES: usize = 1 << 16;
const PAGES_MAX: usize = 64;
const BATCH_OPS: usize = 512;
const BATCHES_MIN: usize = 8;
