//! A link to somebody, over a port of our own, that is cut or stalled, and mended.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Context;

/// Bytes of one read.
const PIECE_BYTES: usize = 64 * 1024;

/// A port whose connections go to somebody else, until they are cut.
#[derive(Debug)]
pub struct Link {
    /// Where it is reached.
    pub address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    ends: Mutex<Ends>,
    mended: Condvar,
}

#[derive(Debug, Default)]
struct Ends {
    is_cut: bool,
    is_stalled: bool,
    sockets: Vec<TcpStream>,
}

impl Link {
    /// To this address. Whoever connects while nobody is there is closed.
    ///
    /// # Errors
    /// No port is free.
    pub fn to(far: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
        let address = listener.local_addr().context("a bound listener has an address")?;
        let state = Arc::<State>::default();
        let kept = Arc::clone(&state);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                // What cannot be carried is closed by being dropped.
                let Ok(far) = TcpStream::connect(far) else { continue };
                let _ = carry(near, far, &kept);
            }
        });
        Ok(Self { address, state })
    }

    /// Cuts every connection, and lets none through until it is mended.
    pub fn cut(&self) {
        let mut ends = self.state.lock();
        ends.is_cut = true;
        // One that has ended is cut.
        ends.sockets.drain(..).for_each(|socket| drop(socket.shutdown(Shutdown::Both)));
    }

    /// Holds back every byte until it is mended: no end learns that the other one is not reached.
    pub fn stall(&self) {
        self.state.lock().is_stalled = true;
    }

    /// Lets connections and bytes through.
    pub fn mend(&self) {
        let mut ends = self.state.lock();
        (ends.is_cut, ends.is_stalled) = (false, false);
        self.state.mended.notify_all();
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Ends> {
        // Every change leaves it whole.
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the link is stalled.
    fn wait(&self) {
        let ends = self.lock();
        drop(self.mended.wait_while(ends, |ends| ends.is_stalled).unwrap_or_else(PoisonError::into_inner));
    }
}

fn carry(near: TcpStream, far: TcpStream, state: &Arc<State>) -> std::io::Result<()> {
    let mut ends = state.lock();
    if ends.is_cut {
        return Ok(());
    }
    // A socket that has ended has no peer.
    ends.sockets.retain(|socket| socket.peer_addr().is_ok());
    for socket in [&near, &far] {
        socket.set_nodelay(true)?;
        ends.sockets.push(socket.try_clone()?);
    }
    for (from, to) in [(near.try_clone()?, far.try_clone()?), (far, near)] {
        let state = Arc::clone(state);
        thread::spawn(move || {
            // Its end, whatever it is, is the link's.
            let _ = pass(&from, &to, &state);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}

/// Passes bytes on until one of the two ends.
fn pass(mut from: &TcpStream, mut to: &TcpStream, state: &State) -> std::io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let length = from.read(&mut piece)?;
        state.wait();
        if length == 0 {
            return Ok(());
        }
        to.write_all(&piece[..length])?;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn stalled_link_holds_bytes_until_mended() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let link = Link::to(listener.local_addr().unwrap()).unwrap();
        let mut near = TcpStream::connect(link.address).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        far.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        link.stall();
        near.write_all(b"held").unwrap();
        let mut piece = [0; 4];
        assert!(far.read(&mut piece).is_err());
        link.mend();
        far.set_read_timeout(None).unwrap();
        far.read_exact(&mut piece).unwrap();
        assert_eq!(&piece, b"held");
        link.cut();
        assert!(matches!(near.read(&mut piece), Ok(0) | Err(_)));
    }
}
