//! The secret of a job: a word that its ranks share and no other program knows.

use crate::boot::sys;
use hmac_sha256::HMAC;
use std::fmt;
use std::io;

/// The secret. It is never printed, sent or put on a command line.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

/// A number that is used once, so that a recorded proof of the secret proves
/// nothing later.
pub type Nonce = [u8; 16];

/// A proof that an end knows the secret.
pub type Proof = [u8; 32];

/// The end that makes a proof: the proof of one end is not valid for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofSide {
    /// A rank.
    Client = 1,
    /// The server.
    Server = 2,
}

impl Secret {
    /// Makes a secret of a word that the user chose; `None` if it is shorter than
    /// [`BYTES_MIN`](Self::BYTES_MIN).
    pub fn new(word: &str) -> Option<Self> {
        (word.len() >= Self::BYTES_MIN).then(|| Self(word.as_bytes().to_vec()))
    }

    /// A random secret, as text for the environment.
    ///
    /// # Errors
    ///
    /// The error of the system, if it has no random numbers.
    pub fn random_word() -> io::Result<String> {
        let mut bytes = [0; 32];
        sys::random(&mut bytes)?;
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The proof of `end` over `what` that it knows the secret.
    pub(super) fn prove(&self, end: ProofSide, what: &[&[u8]]) -> Proof {
        self.mac(end, what).finalize()
    }

    /// Whether `proof` is the proof of `end` over `what`; takes the same time for
    /// every proof.
    pub(super) fn is_proved(&self, end: ProofSide, what: &[&[u8]], proof: &Proof) -> bool {
        self.mac(end, what).finalize_verify(proof)
    }

    fn mac(&self, end: ProofSide, what: &[&[u8]]) -> HMAC {
        let mut mac = HMAC::new(&self.0);
        mac.update(b"tsumugi boot");
        mac.update([end as u8]);
        for part in what {
            mac.update((part.len() as u32).to_le_bytes());
            mac.update(part);
        }
        mac
    }

    /// The least length of the word; a shorter one could be found by trying.
    pub const BYTES_MIN: usize = 16;
}

/// A random nonce.
pub(super) fn nonce() -> io::Result<Nonce> {
    let mut nonce = Nonce::default();
    sys::random(&mut nonce)?;
    Ok(nonce)
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_depends_on_the_secret_the_end_and_every_byte() {
        let secret = Secret::new("warp and weft, warp and weft").unwrap();
        let other = Secret::new("warp and weft, warp and weft.").unwrap();
        let proof = secret.prove(ProofSide::Client, &[b"ab", b"c"]);
        assert!(secret.is_proved(ProofSide::Client, &[b"ab", b"c"], &proof));
        assert!(!other.is_proved(ProofSide::Client, &[b"ab", b"c"], &proof));
        assert!(!secret.is_proved(ProofSide::Server, &[b"ab", b"c"], &proof));
        assert!(!secret.is_proved(ProofSide::Client, &[b"a", b"bc"], &proof));
    }

    /// The proofs are those of another implementation: `hmac.new(key, data, "sha256")` of Python.
    /// A key of more than a block, 64 bytes, is hashed first.
    #[test]
    fn the_proof_is_hmac_sha_256() {
        let proofs = [
            (28, "0fd4e8136c058d10f9694a8a33e9e790559839be4b3fafdc81421873eb770ebb"),
            (64, "ac79e89eba06e7cc102a8a6eaaf0f87b3983a14936c01c50577d2ad8a541a9bb"),
            (65, "33fc90de43d5c9fa618d733f09fa16398e61ebc8fde1f1d9dd4fae7d7f5bbc51"),
        ];
        for (bytes, expected) in proofs {
            let secret = Secret::new(&"w".repeat(bytes)).unwrap();
            let proof = secret.prove(ProofSide::Client, &[b"ab", b"c"]);
            assert_eq!(proof.map(|byte| format!("{byte:02x}")).concat(), expected, "{bytes}");
        }
    }

    #[test]
    fn a_secret_has_a_minimum_length_and_is_not_printed() {
        assert!(Secret::new("short").is_none());
        let word = Secret::random_word().unwrap();
        assert_eq!(word.len(), 64);
        assert_ne!(word, Secret::random_word().unwrap());
        assert_eq!(format!("{:?}", Secret::new(&word).unwrap()), "Secret");
    }
}
