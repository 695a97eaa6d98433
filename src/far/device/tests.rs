//! How a device is named, and what is said where there is none.

use super::*;

#[test]
fn a_port_stands_after_a_colon() {
    assert_eq!(with_port("mlx5_0"), ("mlx5_0", None));
    assert_eq!(with_port("mlx5_0:2"), ("mlx5_0", Some(2)));
    assert_eq!(with_port("mlx5_0:two"), ("mlx5_0:two", None));
}

#[test]
fn a_device_that_is_not_here_is_named() {
    let device = Some("no such device".to_owned());
    let kind = NetworkKind::Verbs;
    let config = NetworkConfig { kind, device, ..NetworkConfig::default() };
    let error = Device::open(&config, Rank(0), 1).map(drop).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("no such device: "), "{text}");
    assert_eq!(text.matches("libibverbs").count(), 1, "{text}");
}
