//! The order to an agent: a length, then fields, each with a kind, a length and
//! bytes.

use std::io::{self, ErrorKind, Read, Write};

/// The order: the ranks that an agent starts, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentOrder {
    /// The number of ranks of the whole job.
    pub size: u32,
    /// The ranks to start.
    pub ranks: Vec<u32>,
    /// Whether lines of output begin with the rank.
    pub label: bool,
    /// The working folder of the ranks.
    pub folder: Vec<u8>,
    /// The program.
    pub program: Vec<u8>,
    /// The program's arguments.
    pub words: Vec<Vec<u8>>,
    /// The environment, which includes the secret.
    pub variables: Vec<(Vec<u8>, Vec<u8>)>,
}

impl AgentOrder {
    /// Writes the order.
    pub fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = MAGIC.to_vec();
        let mut field = |kind: u8, field: &[u8]| {
            bytes.push(kind);
            bytes.extend((field.len() as u32).to_le_bytes());
            bytes.extend(field);
        };
        field(b'S', &self.size.to_le_bytes());
        self.ranks.iter().for_each(|rank| field(b'R', &rank.to_le_bytes()));
        field(b'L', &[u8::from(self.label)]);
        field(b'F', &self.folder);
        field(b'P', &self.program);
        self.words.iter().for_each(|word| field(b'W', word));
        for (name, value) in &self.variables {
            field(b'V', &[name, &b"="[..], value].concat());
        }
        to.write_all(&(bytes.len() as u32).to_le_bytes())?;
        to.write_all(&bytes)?;
        to.flush()
    }

    /// The value of one of the order's variables, if it is text.
    pub fn variable(&self, name: &str) -> Option<String> {
        let found = self.variables.iter().find(|(known, _)| known == name.as_bytes());
        found.and_then(|(_, value)| String::from_utf8(value.clone()).ok())
    }

    /// Reads an order.
    pub fn receive(from: &mut impl Read) -> io::Result<Self> {
        let mut len = [0; 4];
        from.read_exact(&mut len)?;
        let len = u32::from_le_bytes(len) as usize;
        if len > BYTES_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; len];
        from.read_exact(&mut bytes)?;
        Self::parse(&bytes).ok_or(ErrorKind::InvalidData.into())
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (mut order, mut rest) = (Self::default(), bytes.strip_prefix(MAGIC)?);
        while let [kind, after @ ..] = rest {
            let (len, after) = after.split_first_chunk()?;
            let (field, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            let number = || field.try_into().ok().map(u32::from_le_bytes);
            match kind {
                b'S' => order.size = number()?,
                b'R' => order.ranks.push(number()?),
                b'L' => order.label = field == [1],
                b'F' => order.folder = field.to_vec(),
                b'P' => order.program = field.to_vec(),
                b'W' => order.words.push(field.to_vec()),
                b'V' => {
                    let name = field.iter().position(|byte| *byte == b'=').filter(|at| *at > 0)?;
                    order.variables.push((field[..name].to_vec(), field[name + 1..].to_vec()));
                }
                _ => return None,
            }
            rest = after;
        }
        let is_whole = order.ranks.iter().all(|rank| *rank < order.size)
            && !order.ranks.is_empty()
            && !order.program.is_empty();
        is_whole.then_some(order)
    }
}

/// After the order, the launcher sends one byte for each signal. To name the rank
/// that ended the job, it sends this byte and then the rank in four bytes.
pub const DEATH: u8 = 0x80;
const MAGIC: &[u8] = b"tsumugi agent 1\n";
/// An environment has at most some megabytes.
const BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn order() -> AgentOrder {
        AgentOrder {
            size: 4,
            ranks: vec![2, 3],
            label: true,
            folder: b"/tmp".to_vec(),
            program: b"echo".to_vec(),
            words: vec![b"".to_vec(), b"a b\xff".to_vec()],
            variables: vec![(b"A".to_vec(), b"b=c\n".to_vec())],
        }
    }

    #[test]
    fn an_order_is_the_same_after_encoding() {
        let mut bytes = Vec::new();
        order().send(&mut bytes).unwrap();
        bytes.push(15);
        let mut from = &bytes[..];
        assert_eq!(AgentOrder::receive(&mut from).unwrap(), order());
        assert_eq!(order().variable("A").as_deref(), Some("b=c\n"));
        assert_eq!(order().variable("B"), None);
        assert_eq!(from, [15], "the byte of a signal follows the order");
    }

    #[test]
    fn an_order_that_is_cut_off_or_changed_is_refused() {
        let mut bytes = Vec::new();
        order().send(&mut bytes).unwrap();
        for len in 0..bytes.len() {
            assert!(AgentOrder::receive(&mut &bytes[..len]).is_err(), "{len} bytes");
        }
        assert!(AgentOrder::receive(&mut &[0xff; 64][..]).is_err());
        for at in 4..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0xff;
            // The result is an error or another order, but never a panic.
            let _ = AgentOrder::receive(&mut &bytes[..]);
        }
    }
}
