//! Weaves mutants into a source, beside the code that they replace.
//!
//! ```text
//!  a < b      (if on(3) { (a) <= (b) } else { a < b })
//!  f(x);      if on(4) { } else { f(x); }
//!  fn f() {   fn f() { if on(5) { return None; }
//! ```
//!
//! The original code may contain further mutants, and the code of a mutant contains none,
//! so two places are nested or disjoint.

use crate::draw::Drawn;
use crate::find::{Change, Source};
use std::collections::BTreeSet;
use std::ops::Range;

/// The text of a file with its mutants, and the bytes whose errors each mutant may cause.
#[derive(Debug)]
pub struct Woven {
    pub text: String,
    pub ranges: Vec<(u32, Range<usize>)>,
}

/// Weaves all mutants of a source except the dropped ones.
pub fn weave(source: usize, of: &Source, drawn: &[Drawn], dropped: &BTreeSet<u32>) -> Woven {
    let mut places: Vec<(Range<usize>, Vec<u32>)> = Vec::new();
    let mut own: Vec<u32> = (0..drawn.len() as u32)
        .filter(|id| drawn[*id as usize].source == source && !dropped.contains(id))
        .collect();
    // Outer places first.
    own.sort_by_key(|id| {
        let range = &drawn[*id as usize].range;
        (range.start, std::cmp::Reverse(range.end), is_expression(&drawn[*id as usize]))
    });
    for id in own {
        let range = drawn[id as usize].range.clone();
        match places.last_mut() {
            Some((last, ids))
                if *last == range
                    && is_expression(&drawn[ids[0] as usize])
                        == is_expression(&drawn[id as usize]) =>
            {
                ids.push(id);
            }
            _ => places.push((range, vec![id])),
        }
    }
    let door = if of.file.starts_with("core/") { "crate" } else { "::tsumugi_core" };
    let mut loom = Loom {
        text: &of.text,
        drawn,
        places,
        next: 0,
        door,
        out: String::new(),
        ranges: Vec::new(),
    };
    loom.until(0, of.text.len());
    Woven { text: loom.out, ranges: loom.ranges }
}

fn is_expression(mutant: &Drawn) -> bool {
    matches!(mutant.change, Change::Expression(_))
}

struct Loom<'a> {
    text: &'a str,
    drawn: &'a [Drawn],
    places: Vec<(Range<usize>, Vec<u32>)>,
    next: usize,
    /// The crate with the switch.
    door: &'static str,
    out: String,
    ranges: Vec<(u32, Range<usize>)>,
}

impl Loom<'_> {
    fn until(&mut self, from: usize, to: usize) {
        let mut at = from;
        while let Some((range, ids)) = self.places.get(self.next).cloned() {
            let ends_inside = range.end <= to;
            let begins_inside = range.start >= at && (range.start < to || range.is_empty());
            if !ends_inside || !begins_inside {
                break;
            }
            self.next += 1;
            self.out.push_str(&self.text[at..range.start]);
            self.place(&range, &ids);
            at = range.end;
        }
        self.out.push_str(&self.text[at..to]);
    }

    fn place(&mut self, range: &Range<usize>, ids: &[u32]) {
        let begin = self.out.len();
        let drawn = self.drawn;
        let is_expression = is_expression(&drawn[ids[0] as usize]);
        if is_expression {
            self.out.push('(');
        }
        for id in ids {
            let own = self.out.len();
            let on = format!(" if {}::sync::sampled::on({id}) ", self.door);
            match &drawn[*id as usize].change {
                Change::Expression(other) | Change::Statement(other) => {
                    self.out.push_str(&format!("{on}{{ {other} }} else"));
                }
                Change::Entry(value) => self.out.push_str(&format!("{on}{{ return {value}; }}")),
            }
            self.ranges.push((*id, own..self.out.len()));
        }
        if !range.is_empty() {
            self.out.push_str(" { ");
            self.until(range.start, range.end);
            self.out.push_str(" }");
        }
        if is_expression {
            self.out.push(')');
        }
        let all = begin..self.out.len();
        self.ranges.extend(ids.iter().map(|id| (*id, all.clone())));
    }
}

/// The text that is appended to `core/src/sync.rs` in the copy of the tree.
pub const SWITCH: &str = r#"

/// The switch of the mutants of `ci/mutants.sh`: an environment variable switches one
/// mutant on. Another one names a file with a byte for each mutant, shared by all
/// processes of a test, in which the reached mutants are noted.
#[doc(hidden)]
#[allow(missing_docs)]
pub mod sampled {
    use ::core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};

    static CHOSEN: AtomicU64 = AtomicU64::new(UNREAD);
    static REACHED: AtomicPtr<u8> = AtomicPtr::new(::core::ptr::null_mut());
    const UNREAD: u64 = u64::MAX;
    const NONE: u64 = u64::MAX - 1;

    unsafe extern "C" {
        fn getenv(name: *const u8) -> *const u8;
        fn open(path: *const u8, flags: i32, ...) -> i32;
        fn close(fd: i32) -> i32;
        fn mmap(at: *mut u8, len: usize, prot: i32, flags: i32, fd: i32, off: i64) -> *mut u8;
    }

    #[inline(never)]
    pub fn on(id: u32) -> bool {
        let mut chosen = CHOSEN.load(Acquire);
        if chosen == UNREAD {
            chosen = read();
        }
        let reached = REACHED.load(Relaxed);
        if !reached.is_null() {
            // SAFETY: the file has a byte for each mutant.
            unsafe { reached.add(id as usize).write_volatile(1) };
        }
        chosen == u64::from(id)
    }

    #[cold]
    fn read() -> u64 {
        // SAFETY: the names end with a zero byte, and the environment does not change. If
        // two threads come at once, the file is mapped twice.
        unsafe {
            let mut chosen = NONE;
            let mut at = getenv(c"TSUMUGI_TEST_SAMPLED".as_ptr().cast());
            if !at.is_null() && *at != 0 {
                chosen = 0;
                while *at != 0 {
                    chosen = chosen * 10 + u64::from(*at - b'0');
                    at = at.add(1);
                }
            }
            let path = getenv(c"TSUMUGI_TEST_SAMPLED_REACHED".as_ptr().cast());
            if !path.is_null() && *path != 0 {
                let fd = open(path, 2);
                if fd >= 0 {
                    let map = mmap(::core::ptr::null_mut(), 1 << 16, 3, 1, fd, 0);
                    if map as isize != -1 {
                        REACHED.store(map, Relaxed);
                    }
                    close(fd);
                }
            }
            CHOSEN.store(chosen, Release);
            chosen
        }
    }
}
"#;
