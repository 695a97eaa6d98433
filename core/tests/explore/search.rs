//! Every state that a model can reach, breadth first: the first failure has
//! the shortest trace.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::{self, Debug};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Something that moves in steps from state to state.
pub trait Model {
    /// All there is to know between two steps.
    type State: Clone + Eq + Hash;
    /// What can happen.
    type Step: Copy + Debug;

    /// Where it starts.
    fn start(&self) -> Self::State;

    /// What can happen next, in any of these ways.
    fn steps(&self, state: &Self::State, steps: &mut Vec<Self::Step>);

    /// Lets it happen. An error is a rule that was broken.
    fn apply(&self, state: &mut Self::State, step: Self::Step) -> Result<(), String>;

    /// Nothing can happen any more: is all that had to end at its end?
    fn at_rest(&self, state: &Self::State) -> Result<(), String>;

    /// The line of a trace for a step that is about to happen.
    fn tell(&self, _before: &Self::State, step: Self::Step) -> String {
        format!("{step:?}")
    }
}

/// What was broken, and the shortest way there.
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

/// Visits every state and returns how many there are.
///
/// # Panics
///
/// If there are more than `most`: the model is too large to say anything.
pub fn explore<M: Model>(model: &M, most: usize) -> Result<usize, Failure> {
    let start = model.start();
    let mut seen: HashMap<M::State, (), BuildHasherDefault<Mixer>> = HashMap::default();
    seen.insert(start.clone(), ());
    // States in the order of their distance from the start, and how each was
    // first reached.
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
        // The last one may be the one that fails.
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

/// Something that can only be run from its start: a state is the way there.
pub trait Replay {
    /// What can happen.
    type Step: Copy + Debug;

    /// Takes all these steps. An error is a rule that was broken.
    fn run(&self, path: &[Self::Step]) -> Result<Reached<Self::Step>, Failure>;

    /// Takes all these steps, after which nothing changes any more: is all
    /// that had to end at its end?
    fn at_rest(&self, path: &[Self::Step]) -> Result<(), Failure>;
}

/// Where a way leads.
pub struct Reached<S> {
    /// The same for ways that lead to the same state.
    pub digest: u64,
    /// What can happen next, though it may change nothing.
    pub steps: Vec<S>,
}

/// Visits states once, by the shortest way, until there is none left or there
/// were `most`. Returns how many there were.
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
