//! Every state that a model can reach, breadth first: the first failure has
//! the shortest trace.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::{self, Debug};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A model that moves in steps from state to state.
pub trait Model {
    /// The whole state of the model between two steps.
    type State: Clone + Eq + Hash;
    /// A step.
    type Step: Copy + Debug;

    /// The first state.
    fn start(&self) -> Self::State;

    /// Adds all steps that are possible in a state.
    fn steps(&self, state: &Self::State, steps: &mut Vec<Self::Step>);

    /// Takes a step. An error is a rule that was broken.
    fn apply(&self, state: &mut Self::State, step: Self::Step) -> Result<(), String>;

    /// Called when no step is possible: has everything ended that had to end?
    fn at_rest(&self, state: &Self::State) -> Result<(), String>;

    /// The line of a trace for a step that is about to be taken.
    fn tell(&self, _before: &Self::State, step: Self::Step) -> String {
        format!("{step:?}")
    }
}

/// The rule that was broken, and the shortest trace to it.
#[derive(Clone)]
pub struct Failure {
    pub what: String,
    pub trace: Vec<String>,
}

impl Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what)?;
        for (number, step) in self.trace.iter().enumerate() {
            writeln!(f, "{:4}  {step}", number + 1)?;
        }
        Ok(())
    }
}

/// Visits every state and returns their number.
///
/// # Panics
///
/// If there are more than `most` states.
pub fn explore<M: Model>(model: &M, most: usize) -> Result<usize, Failure> {
    let start = model.start();
    let mut seen: HashMap<M::State, (), BuildHasherDefault<Mixer>> = HashMap::default();
    seen.insert(start.clone(), ());
    // States in the order of their distance from the start, and the step by which each was first
    // reached.
    let mut states = vec![start];
    let mut reached: Vec<Option<(usize, M::Step)>> = vec![None];
    let mut steps = Vec::new();
    let mut next = 0;
    while next < states.len() {
        steps.clear();
        model.steps(&states[next], &mut steps);
        if steps.is_empty() {
            let result = model.at_rest(&states[next]);
            result.map_err(|what| Failure { what, trace: trace(model, &reached, next, None) })?;
        }
        for &step in &steps {
            let mut state = states[next].clone();
            if let Err(what) = model.apply(&mut state, step) {
                return Err(Failure { what, trace: trace(model, &reached, next, Some(step)) });
            }
            if let Entry::Vacant(place) = seen.entry(state) {
                states.push(place.key().clone());
                place.insert(());
                reached.push(Some((next, step)));
            }
        }
        assert!(states.len() <= most, "more than {most} states");
        next += 1;
    }
    Ok(states.len())
}

fn trace<M: Model>(
    model: &M,
    reached: &[Option<(usize, M::Step)>],
    mut at: usize,
    last: Option<M::Step>,
) -> Vec<String> {
    let mut steps: Vec<M::Step> = last.into_iter().collect();
    while let Some((before, step)) = reached[at] {
        steps.push(step);
        at = before;
    }
    let mut state = model.start();
    let mut lines = Vec::new();
    for &step in steps.iter().rev() {
        lines.push(model.tell(&state, step));
        // The last step may be the one that fails.
        let _ = model.apply(&mut state, step);
    }
    lines
}

/// A quick hash: multiply and fold, a word at a time.
#[derive(Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut whole = [0; 8];
            whole[..word.len()].copy_from_slice(word);
            self.write_u64(u64::from_le_bytes(whole));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        let product =
            u128::from(self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        self.0 = (product as u64) ^ ((product >> 64) as u64).rotate_left(23) ^ 0x51;
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// A model that can only be run from its start: a state is the path to it.
pub trait Replay {
    /// A step.
    type Step: Copy + Debug;

    /// Takes all these steps. An error is a rule that was broken.
    fn run(&self, path: &[Self::Step]) -> Result<Reached<Self::Step>, Failure>;

    /// Takes all these steps, after which no step changes anything: has everything ended that had
    /// to end?
    fn at_rest(&self, path: &[Self::Step]) -> Result<(), Failure>;
}

/// The state at the end of a path.
pub struct Reached<S> {
    /// The same value for all paths that lead to the same state.
    pub digest: u64,
    /// The next steps that are possible, though some may change nothing.
    pub steps: Vec<S>,
}

/// Visits states once, by the shortest path, until none is left or `most` were visited.
/// Returns their number.
pub fn replay<M: Replay>(model: &M, most: usize) -> Result<usize, Failure> {
    let mut seen: HashSet<u64, BuildHasherDefault<Mixer>> = HashSet::default();
    let start = model.run(&[])?;
    seen.insert(start.digest);
    let mut ways = VecDeque::from([(Vec::new(), start)]);
    while let Some((mut way, Reached { digest, steps })) = ways.pop_front() {
        let mut moves = false;
        for step in steps {
            way.push(step);
            let reached = model.run(&way)?;
            moves |= reached.digest != digest;
            if seen.insert(reached.digest) {
                ways.push_back((way.clone(), reached));
            }
            way.pop();
        }
        if !moves {
            model.at_rest(&way)?;
        }
        if seen.len() >= most {
            break;
        }
    }
    Ok(seen.len())
}

/// Folds a word into a digest.
pub fn mix(digest: &mut u64, word: u64) {
    let mut mixer = Mixer(*digest);
    mixer.write_u64(word);
    *digest = mixer.0;
}
