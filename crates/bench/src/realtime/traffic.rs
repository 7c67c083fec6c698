//! Bytes sent over TCP to an address, as the kernel counts them and `ss` of iproute2 tells.

use std::net::SocketAddr;
use std::process::Command;

/// Bytes sent so far to this address over all connections that stand; `None` where there is no `ss`.
pub fn bytes_sent_to(address: SocketAddr) -> Option<u64> {
    let told = Command::new("ss").args(["-tinH", "dst", &address.to_string()]).output().ok()?;
    told.status.success().then(|| sum(&String::from_utf8_lossy(&told.stdout)))
}

fn sum(text: &str) -> u64 {
    text.split_whitespace().filter_map(|word| word.strip_prefix("bytes_sent:")?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_all_connections_are_added() {
        let text =
            "ESTAB 0 0 127.0.0.1:1 127.0.0.1:2\n\t cubic bytes_sent:120 bytes_acked:121 segs_out:3\nESTAB 0 0 a b\n\t bytes_sent:5\n";
        assert_eq!((sum(text), sum("")), (125, 0));
    }
}
