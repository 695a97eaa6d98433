//! What the messages of a job were, for its last lines with `TSUMUGI_VERBOSE=on`.

use crate::fault::Answer;
use crate::job::Job;
use std::fmt::Write;
use tsumugi::group::Sum;
use tsumugi_core::msg::{MessageCounts, MessagePath};

/// Has rank 0 print the messages of all ranks, by their paths and lengths. Collective over all
/// ranks.
pub(crate) fn print(job: &Job) -> Answer {
    let counts = job.messages.counts();
    let mut sums = [[0_u64; LENGTHS]; MessagePath::ALL.len()];
    for (path, sums) in MessagePath::ALL.into_iter().zip(&mut sums) {
        sums.copy_from_slice(counts.messages(path));
    }
    job.world.group.allreduce(sums.as_flattened_mut(), Sum)?;
    if job.world.rank() == 0 {
        eprint!("{}", text(&sums));
    }
    Ok(())
}

fn text(sums: &[[u64; LENGTHS]]) -> String {
    let of_path = |at: usize| sums[at].iter().sum::<u64>();
    let total: u64 = sums.as_flattened().iter().sum();
    let mut text = format!("tsumugi: {total} messages:");
    for (at, path) in MessagePath::ALL.into_iter().enumerate() {
        let _ = write!(text, " {} {},", path.name(), of_path(at));
    }
    let direct = of_path(MessagePath::Direct as usize) as f64;
    let share = 100.0 * direct / (total.max(1) as f64);
    let _ = writeln!(text, " so {share:.0} % straight into a receive that was posted");
    text += "tsumugi: messages by length:";
    for (at, max) in MessageCounts::BINS.into_iter().enumerate() {
        let _ = write!(text, " up to {max} B {},", sums.iter().map(|path| path[at]).sum::<u64>());
    }
    let longer: u64 = sums.iter().map(|path| path[LENGTHS - 1]).sum();
    let _ = writeln!(text, " longer {longer}");
    text
}

const LENGTHS: usize = MessageCounts::BINS.len() + 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_shown_by_path_and_length() {
        let mut sums = [[0; LENGTHS]; MessagePath::ALL.len()];
        sums[MessagePath::Inline as usize][0] = 1;
        sums[MessagePath::Direct as usize][2] = 2;
        sums[MessagePath::Rendezvous as usize][LENGTHS - 1] = 1;
        let text = text(&sums);
        let first =
            "tsumugi: 4 messages: inline 1, eager 0, direct 2, rendezvous 1, so 50 % straight";
        assert!(text.starts_with(first), "{text}");
        assert!(text.ends_with("up to 4096 B 2, up to 8192 B 0, up to 16384 B 0, up to 32768 B 0, up to 65536 B 0, longer 1\n"), "{text}");
    }
}
