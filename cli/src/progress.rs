//! Messages on standard error while a command works.
//!
//! On a terminal there is a progress bar, which disappears when the work is done; in
//! a pipe or a log there is one plain line for each stage. Standard output is
//! reserved for the result.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// The progress of one command.
#[derive(Debug)]
pub struct ProgressLine(Shown);

#[derive(Debug)]
enum Shown {
    Bar(ProgressBar),
    /// Lines of text: standard error is no terminal.
    Lines,
    Nothing,
}

impl ProgressLine {
    /// Progress on standard error, as a bar if it is a terminal.
    pub fn new() -> Self {
        Self(if std::io::stderr().is_terminal() { Shown::Bar(bar()) } else { Shown::Lines })
    }

    /// No output: one of the ranks shows the progress for all.
    pub fn silent() -> Self {
        Self(Shown::Nothing)
    }

    /// Begins a stage of the work, with the name `what` and `steps` steps.
    pub fn stage(&self, what: &str, steps: u64) {
        match &self.0 {
            Shown::Bar(bar) => {
                bar.set_message(what.to_owned());
                bar.set_length(steps);
                bar.set_position(0);
                bar.tick();
            }
            Shown::Lines => eprintln!("tsumugi: {what}"),
            Shown::Nothing => {}
        }
    }

    /// Runs `write`, which writes to standard output, while the bar is hidden: both may
    /// be one terminal.
    pub fn hidden<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.0 {
            Shown::Bar(bar) => bar.suspend(write),
            Shown::Lines | Shown::Nothing => write(),
        }
    }

    /// Reports that `steps` steps of the stage are done.
    pub fn at(&self, steps: u64) {
        if let Shown::Bar(bar) = &self.0 {
            bar.set_position(steps);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Shown::Bar(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    let style = ProgressStyle::with_template("{msg:18} [{bar:32}] {human_pos}/{human_len}")
        .expect("the template is a constant");
    bar.set_style(style.progress_chars("=> "));
    bar
}
