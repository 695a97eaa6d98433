//! The ranks that end because another rank has ended, and what they print about it.
//!
//! When a rank dies, each other rank gets an error that names it, and mostly prints it
//! and ends. The launcher names the first cause once, drops the lines that only repeat
//! it, and counts the ranks.
//!
//! ```text
//!  rank 2: thread 'main' panicked at ...        the cause: printed by rank 2
//!  Error: rank 0: rank 2 has died               dropped
//!  rank 1: thread 'main' panicked at ...: ... rank 2 has died   dropped
//!  tsumugi: rank 2 (pid 7) exited with code 101 (it panicked)
//!  tsumugi: 2 other ranks ended because of it
//! ```

use tsumugi_core::mem::Rank;

/// Which lines are those of followers.
#[derive(Debug, Default)]
pub struct Followers {
    cause: Option<Rank>,
}

impl Followers {
    /// From now on the lines of ranks other than `cause` are looked at.
    pub fn expect(&mut self, cause: Rank) {
        self.cause.get_or_insert(cause);
    }

    /// Whether a rank has ended because of which others may end.
    pub fn are_expected(&self) -> bool {
        self.cause.is_some()
    }

    /// The lines of `rank`, each after a label of so many bytes, without those that
    /// only say that another rank has died.
    pub fn without(&self, rank: Rank, label: usize, lines: &[u8]) -> Vec<u8> {
        let is_kept = |line: &&[u8]| {
            self.cause == Some(rank)
                || !line.get(label..).is_some_and(|line| is_of_follower(rank, line))
        };
        lines.split_inclusive(|byte| *byte == b'\n').filter(is_kept).flatten().copied().collect()
    }
}

/// The line with the number of the ranks that have followed; `None` if there are none.
pub fn followers_sentence(followers: usize) -> Option<String> {
    match followers {
        0 => None,
        1 => Some("tsumugi: 1 other rank ended because of it\n".to_owned()),
        many => Some(format!("tsumugi: {many} other ranks ended because of it\n")),
    }
}

/// Whether a line is the error of a main that Rust's std prints, or the report of a
/// panic, and its reason is only that another rank has died.
fn is_of_follower(rank: Rank, line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let own = format!("{rank}: ");
    let Some(before) = line.trim_end().strip_suffix(" has died") else { return false };
    if let Some(error) = before.strip_prefix("Error: ") {
        return is_rank(error.strip_prefix(&*own).unwrap_or(error));
    }
    let names_rank = || {
        let at = before.rfind("rank ")?;
        Some(is_rank(&before[at..]))
    };
    before.strip_prefix(&*own).is_some_and(|panic| {
        panic.contains("thread '") && panic.contains("panicked at") && names_rank() == Some(true)
    })
}

/// Whether a text is the name of a rank.
fn is_rank(text: &str) -> bool {
    text.strip_prefix("rank ").is_some_and(|number| number.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_followers_are_dropped() {
        let mut followers = Followers::default();
        assert!(!followers.are_expected());
        followers.expect(Rank(2));
        followers.expect(Rank(0));
        let lines = "Error: rank 2 has died\nError: rank 1: rank 2 has died\n\
                     rank 1: thread 'main' panicked at a.rs:1:2: no: rank 0 has died\n\
                     Error: the cat has died\nrank 2 has died, so I save my work\nrank 2 has died\n\
                     Error: rank 2 has died";
        let kept = "Error: the cat has died\nrank 2 has died, so I save my work\n\
                    rank 2 has died\n";
        let of = |rank, label, lines: &str| {
            String::from_utf8(followers.without(rank, label, lines.as_bytes())).unwrap()
        };
        assert_eq!(of(Rank(1), 0, lines), kept);
        assert_eq!(of(Rank(2), 0, lines), lines, "the cause's own words");
        let labelled = "[1] Error: rank 2 has died\n[1] x\n";
        assert_eq!(of(Rank(1), 4, labelled), "[1] x\n");
        assert_eq!(
            of(Rank(0), 0, "rank 1: thread 'main' panicked at x: rank 2 has died\n").len(),
            53
        );
    }

    #[test]
    fn followers_are_counted() {
        assert_eq!(followers_sentence(0), None);
        assert_eq!(followers_sentence(1).unwrap(), "tsumugi: 1 other rank ended because of it\n");
        assert_eq!(followers_sentence(3).unwrap(), "tsumugi: 3 other ranks ended because of it\n");
    }
}
