//! Tests of the names of devices, of the error without one, and of what a device
//! carries out.

use super::*;
use tsumugi_core::mem::{LocalAddr, RemoteAddr, Width};

#[test]
fn a_port_stands_after_a_colon() {
    assert_eq!(with_port("mlx5_0"), ("mlx5_0", None));
    assert_eq!(with_port("mlx5_0:2"), ("mlx5_0", Some(2)));
    assert_eq!(with_port("mlx5_0:two"), ("mlx5_0:two", None));
}

#[test]
fn a_device_that_does_not_exist_is_named() {
    let device = Some("no such device".to_owned());
    let kind = NetworkKind::Verbs;
    let config = NetworkConfig { kind, device, ..NetworkConfig::default() };
    let error = NetDevice::open(&config, Rank(0), 1).map(drop).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("no such device: "), "{text}");
    assert_eq!(text.matches("libibverbs").count(), 1, "{text}");
}

/// On a stream provider, which has atomics for words but does not use them for puts
/// and gets of as many bytes: aligned bytes of a word's length, which must not be torn,
/// do not go by its puts and gets.
#[test]
fn bytes_of_one_word_do_not_go_by_transfers_that_tear() {
    let stream = Moves { memory: true, rings: false, copies_words: false, words: 1 | 4 | 8 };
    let key = RegionKey::from_bits(1);
    let near = LocalAddr { key, offset: 3 };
    let remote = |offset| RemoteAddr { rank: Rank(1), key, offset };
    let carries = |moves: Moves, offset, bytes| {
        let put = moves.carries(&Op::put(near, remote(offset), bytes));
        assert_eq!(put, moves.carries(&Op::get(remote(offset), near, bytes)));
        put
    };
    for bytes in [2, 4, 8] {
        assert!(!carries(stream, 64, bytes), "{bytes} bytes, aligned");
        assert!(carries(stream, 65, bytes), "{bytes} bytes, not aligned");
        assert!(carries(Moves { copies_words: true, ..stream }, 64, bytes));
    }
    for bytes in [1, 3, 16, 4096] {
        assert!(carries(stream, 64, bytes), "{bytes} bytes");
    }
    assert!(stream.carries(&Op::put_word(remote(64), Width::W8, 5)));
    assert!(!stream.carries(&Op::put_word(remote(64), Width::W2, 5)));
    assert!(!stream.carries(&Op::put_word(remote(64), Width::W8, 5).notifying()));
}
