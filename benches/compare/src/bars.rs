//! What tsumugi must reach: a ratio to another system's row of the same run.

/// A bar for one row.
pub struct Bar {
    pub row: &'static str,
    pub workers: usize,
    /// At most so much ...
    pub factor: f64,
    /// ... of this.
    pub of: Of,
}

/// What a bar is measured against.
pub enum Of {
    /// Another system in the same row.
    System(&'static str),
    /// A cache-line trip of the same run.
    Line,
    /// tsumugi's own row of this name, with one worker.
    Alone(&'static str),
    /// Nothing: the factor is the bar.
    One,
}

const fn bar(row: &'static str, workers: usize, factor: f64, of: Of) -> Bar {
    Bar { row, workers, factor, of }
}

pub const BARS: &[Bar] = &[
    bar("yield2", 1, 4.0, Of::System("bare")),
    bar("yield1000", 1, 5.5, Of::System("bare")),
    bar("create_join", 1, 0.95, Of::System("cmpth")),
    bar("create_join_inline", 1, 0.7, Of::System("rayon")),
    bar("fib", 1, 1.3, Of::System("rayon")),
    bar("fib_no_inline", 1, 0.9, Of::System("cmpth")),
    bar("fib", 2, 1.0 / 1.8, Of::Alone("fib")),
    bar("park_same", 1, 5.0, Of::System("bare")),
    bar("wake_spinning", 2, 2.5, Of::Line),
    bar("wake_sleeping", 1, 1.2, Of::System("bare")),
    bar("mutex", 1, 5.0, Of::One),
    bar("condvar", 1, 25.0, Of::One),
    bar("bytes_per_ult", 1, 4300.0, Of::One),
    bar("create_asleep", 1, 4000.0, Of::One),
];
