//! The commands of the driver.

/// A command, as a line of words.
#[derive(Clone, Copy, Debug)]
pub struct BenchCommand<'a>(&'a str);

impl<'a> BenchCommand<'a> {
    /// The command of a line.
    pub fn of(line: &'a str) -> Self {
        Self(line)
    }

    /// The name of the work.
    pub fn name(&self) -> &'a str {
        self.0.split(' ').next().unwrap_or_default()
    }

    /// The number with this name.
    pub fn number(&self, name: &str) -> Option<u64> {
        let mut words = self.0.split(' ').filter_map(|word| word.split_once('='));
        words.find(|(word, _)| *word == name)?.1.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_name_and_numbers() {
        let command = BenchCommand::of("latency bytes=8 cpu0=1");
        assert_eq!((command.name(), command.number("bytes")), ("latency", Some(8)));
        assert_eq!((command.number("cpu0"), command.number("cpu1")), (Some(1), None));
    }
}
