//! A TCP port for a test's own processes.

use std::io;
use std::mem::forget;
use std::net::{SocketAddr, TcpListener, TcpStream};

/// An address of this machine at which a process that this one starts can listen. As
/// long as this process lives, the system does not give the port to a socket that
/// asks for any free port. It is the port of a connection. A socket that accepts
/// addresses in use (`SO_REUSEADDR`, as std's listeners) can listen there all the
/// same.
///
/// # Errors
///
/// The system's error, if it refuses the listener or the connection.
pub fn reserved() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let ends = (TcpStream::connect(address)?, listener.accept()?);
    // The system closes both ends when this process ends.
    forget(ends);
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_reserved_port_is_given_to_no_other_socket_and_accepts_listeners() {
        let ports: Vec<SocketAddr> = (0..20).map(|_| reserved().unwrap()).collect();
        assert_eq!(ports.iter().collect::<HashSet<_>>().len(), ports.len());
        for port in &ports {
            let everywhere = SocketAddr::from(([0, 0, 0, 0], port.port()));
            let listener = TcpListener::bind(everywhere).unwrap();
            let _caller = TcpStream::connect(port).unwrap();
            listener.accept().unwrap();
            drop(listener);
            // A second listener can bind after the first.
            TcpListener::bind(everywhere).unwrap();
        }
        // A connection from any free port does not take one of the reserved ports.
        let target = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = target.local_addr().unwrap();
        for _ in 0..200 {
            let out = TcpStream::connect(at).unwrap();
            target.accept().unwrap();
            assert!(!ports.contains(&out.local_addr().unwrap()));
        }
    }
}
