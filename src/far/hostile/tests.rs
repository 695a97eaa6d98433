use super::packets;
use std::fs;
use std::path::Path;
use tsumugi_conformance::Seeded;

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/packets");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn the_corpus_is_refused_or_understood() {
    let files = corpus();
    assert!(files.len() >= 20, "{} files", files.len());
    for (path, bytes) in files {
        let mut count = 0;
        let mut rest = &bytes[..];
        while let Some((len, more)) = rest.split_first_chunk() {
            count += 1;
            rest = more.get(usize::from(u16::from_le_bytes(*len))..).unwrap_or(&[]);
        }
        let taken = packets(&bytes);
        assert_eq!(taken == count, path.contains("good"), "{path}: {taken} of {count} were taken");
    }
}

/// Ten thousand changes of the corpus, the same every time.
#[test]
fn changes_of_the_corpus_do_no_harm() {
    let files = corpus();
    let mut seeded = Seeded(0x75);
    let mut changed_and_taken = 0;
    for round in 0..10_000 {
        let (path, bytes) = &files[seeded.below(files.len() as u64) as usize];
        let (_, other) = &files[seeded.below(files.len() as u64) as usize];
        let changed = change(bytes, other, &mut seeded);
        let took = std::panic::catch_unwind(|| packets(&changed));
        let taken = took.unwrap_or_else(|_| panic!("round {round}, from {path}: {changed:02x?}"));
        changed_and_taken += taken;
    }
    assert!(changed_and_taken > 1000, "{changed_and_taken}: the changes go deep");
}

fn change(bytes: &[u8], other: &[u8], seeded: &mut Seeded) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=seeded.below(4) {
        let at = seeded.below(bytes.len() as u64 + 1) as usize;
        match seeded.below(5) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] ^= 1 << seeded.below(8),
            2 if at < bytes.len() => bytes[at] = seeded.next() as u8 >> seeded.below(8),
            3 => bytes.extend_from_slice(other),
            _ => {
                let from = seeded.below(other.len() as u64 + 1) as usize;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
    bytes
}
