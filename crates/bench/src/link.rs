//! A link to somebody, over a port of our own, that is cut and mended.

use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Context;

/// A port whose connections go to somebody else, until they are cut.
#[derive(Debug)]
pub struct Link {
    /// Where it is reached.
    pub address: SocketAddr,
    ends: Arc<Mutex<Ends>>,
}

#[derive(Debug, Default)]
struct Ends {
    is_cut: bool,
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
        let ends = Arc::<Mutex<Ends>>::default();
        let kept = Arc::clone(&ends);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                // What cannot be carried is closed by being dropped.
                let Ok(far) = TcpStream::connect(far) else { continue };
                let _ = carry(near, far, &mut lock(&kept));
            }
        });
        Ok(Self { address, ends })
    }

    /// Cuts every connection, and lets none through until it is mended.
    pub fn cut(&self) {
        let mut ends = lock(&self.ends);
        ends.is_cut = true;
        // One that has ended is cut.
        ends.sockets.drain(..).for_each(|socket| drop(socket.shutdown(Shutdown::Both)));
    }

    /// Lets connections through.
    pub fn mend(&self) {
        lock(&self.ends).is_cut = false;
    }
}

fn lock(ends: &Mutex<Ends>) -> MutexGuard<'_, Ends> {
    // Every change leaves it whole.
    ends.lock().unwrap_or_else(PoisonError::into_inner)
}

fn carry(near: TcpStream, far: TcpStream, ends: &mut Ends) -> std::io::Result<()> {
    if ends.is_cut {
        return Ok(());
    }
    for socket in [&near, &far] {
        socket.set_nodelay(true)?;
        ends.sockets.push(socket.try_clone()?);
    }
    for (mut from, mut to) in [(near.try_clone()?, far.try_clone()?), (far, near)] {
        thread::spawn(move || {
            // Its end, whatever it is, is the link's.
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}
