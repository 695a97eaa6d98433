//! One of our ranks among the measured systems: it reads commands, carries them out,
//! and answers.

use super::command::BenchCommand;
use super::work;
use crate::failure::Failure;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use tsumugi::affinity;
use tsumugi::{Rank, Runtime};

/// Carries out the commands of a driver until the driver closes the pipe.
pub fn serve(rt: &Runtime, folder: &Path) -> Result<(), Failure> {
    let open = |name: &str, is_read: bool| {
        let path = folder.join(name);
        let file =
            if is_read { File::open(&path) } else { File::options().write(true).open(&path) };
        file.map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
    };
    let commands = BufReader::new(open(&rt.rank().0.to_string(), true)?);
    let mut answers = (rt.rank() == Rank(0)).then(|| open("answer", false)).transpose()?;
    let everywhere = affinity::allowed().unwrap_or_default();
    let mut work_state = work::RankWork::new(rt);
    for line in commands.lines() {
        let line = line.map_err(|error| Failure::Failed(error.to_string()))?;
        let command = BenchCommand::of(&line);
        let cpu = command.number(if rt.rank() == Rank(0) { "cpu0" } else { "cpu1" });
        // If the machine does not allow pinning, the measured trips show that.
        let _ = affinity::keep_to(&cpu.map_or(everywhere.clone(), |cpu| vec![cpu as usize]));
        let said = work_state.work(rt, command)?;
        if let Some(answers) = &mut answers {
            let mut text = BufWriter::new(answers);
            let mut say = |line: String| writeln!(text, "{line}");
            let written = said.ns.iter().try_for_each(|ns| say(format!("ns {ns:.3}")));
            let counts = said.counts.iter();
            let written = written
                .and_then(|()| counts.map(|(name, n)| format!("{name} {n}")).try_for_each(&mut say))
                .and_then(|()| say("end".to_owned()))
                .and_then(|()| text.flush());
            written.map_err(|error| Failure::Failed(error.to_string()))?;
        }
    }
    Ok(())
}
