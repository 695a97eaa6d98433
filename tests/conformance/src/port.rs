//! A port for a test's own processes.

use std::io;
use std::mem::forget;
use std::net::{SocketAddr, TcpListener, TcpStream};

/// An address of this machine at which a process that this one starts can listen:
/// the system gives its port to nobody who asks for any, as long as this process is
/// there. It is the port of a connection; a socket that takes addresses which are
/// in use (`SO_REUSEADDR`, as std's listeners) may listen there all the same.
///
/// # Errors
///
/// The system's.
pub fn reserved() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let ends = (TcpStream::connect(address)?, listener.accept()?);
    // Both ends are closed with this process.
    forget(ends);
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_port_is_given_to_nobody_else_and_can_be_listened_at() {
        let ports: Vec<SocketAddr> = (0..20).map(|_| reserved().unwrap()).collect();
        assert_eq!(ports.iter().collect::<HashSet<_>>().len(), ports.len());
        for port in &ports {
            let everywhere = SocketAddr::from(([0, 0, 0, 0], port.port()));
            let listener = TcpListener::bind(everywhere).unwrap();
            let _caller = TcpStream::connect(port).unwrap();
            listener.accept().unwrap();
            drop(listener);
            // Another one may, after the first.
            TcpListener::bind(everywhere).unwrap();
        }
        // A connection out of any port does not take one of them.
        let target = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = target.local_addr().unwrap();
        for _ in 0..200 {
            let out = TcpStream::connect(at).unwrap();
            target.accept().unwrap();
            assert!(!ports.contains(&out.local_addr().unwrap()));
        }
    }
}
