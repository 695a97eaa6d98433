//! Fork and join: workloads for any system that can spawn and join, with one
//! thread per call.

use crate::uts::Node;

/// A system with threads that can be joined.
pub trait Fork {
    /// The handle of a child.
    type Handle<T: Send + 'static>;

    /// Starts a child.
    fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Self::Handle<T>;

    /// Waits for a child, and returns its result.
    fn join<T: Send + 'static>(handle: Self::Handle<T>) -> T;
}

/// A system without threads: spawning is a plain call.
#[derive(Debug)]
pub struct Calls;

impl Fork for Calls {
    type Handle<T: Send + 'static> = T;

    fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> T {
        f()
    }

    fn join<T: Send + 'static>(handle: T) -> T {
        handle
    }
}

/// Returns the `n`th Fibonacci number, with a child per call: [`fib_children`] in
/// all.
pub fn fib<S: Fork>(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let left = S::spawn(move || fib::<S>(n - 1));
    let right = fib::<S>(n - 2);
    S::join(left) + right
}

/// Returns how many children [`fib`] starts.
pub fn fib_children(n: u64) -> u64 {
    let (mut a, mut b) = (0, 1);
    for _ in 0..=n {
        (a, b) = (b, a + b);
    }
    a - 1
}

/// Returns how many nodes the tree at `node` has, with a child per node.
pub fn tree<S: Fork>(node: Node) -> u64 {
    let children =
        (0..node.children()).map(|number| S::spawn(move || tree::<S>(node.child(number))));
    let children: Vec<_> = children.collect();
    1 + children.into_iter().map(S::join).sum::<u64>()
}

/// Returns in how many ways the missing queens can be placed, with a child per
/// queen placed.
pub fn queens<S: Fork>(board: Board) -> u64 {
    if board.is_full() {
        return 1;
    }
    let placed: Vec<_> = board.next().map(|next| S::spawn(move || queens::<S>(next))).collect();
    placed.into_iter().map(S::join).sum()
}

/// A board with queens on its first rows.
#[derive(Clone, Copy, Debug)]
pub struct Board {
    n: u32,
    row: u32,
    columns: u32,
    left: u32,
    right: u32,
}

impl Board {
    /// Makes a board of `n` rows without queens.
    pub fn new(n: u32) -> Self {
        Self { n, row: 0, columns: 0, left: 0, right: 0 }
    }

    /// Whether every row has its queen.
    pub fn is_full(&self) -> bool {
        self.row == self.n
    }

    /// Returns all boards with one queen more.
    pub fn next(self) -> impl Iterator<Item = Self> {
        let taken = self.columns | self.left | self.right;
        (0..self.n).map(|column| 1 << column).filter(move |bit| taken & bit == 0).map(move |bit| {
            Self {
                row: self.row + 1,
                columns: self.columns | bit,
                left: (self.left | bit) << 1,
                right: (self.right | bit) >> 1,
                ..self
            }
        })
    }
}

/// The number of queens of the row `nqueens`.
pub const QUEENS: u32 = 10;
/// In how many ways so many queens can be placed.
pub const QUEENS_WAYS: u64 = 724;
/// The number of children: all boards on the way except the empty one.
pub const QUEENS_CHILDREN: u64 = 35_538;
/// The `n` of the row `fib`. A batch is so short that it is over before the
/// operating system takes the core away.
pub const FIB: u64 = 22;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_forks_are_the_known_ones() {
        assert_eq!((fib::<Calls>(10), fib_children(10)), (55, 88));
        assert_eq!(queens::<Calls>(Board::new(QUEENS)), QUEENS_WAYS);
        assert_eq!(tree::<Calls>(Node::root(5)), crate::uts::count(&Node::root(5)));
    }

    #[test]
    fn children_of_queens_are_counted() {
        fn boards(board: Board) -> u64 {
            board.next().map(|next| 1 + boards(next)).sum()
        }
        assert_eq!(boards(Board::new(QUEENS)), QUEENS_CHILDREN);
    }
}
