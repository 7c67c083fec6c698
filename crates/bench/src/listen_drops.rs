//! Connections that the kernel refused because a listener's queue was full.
//!
//! The client's kernel tries again after 1 s, 3 s, 7 s: without this count such a wait looks like a slow server.

/// How many the kernel has refused since it started, over all listeners of this network namespace; `None` where it does
/// not tell.
pub fn read() -> Option<u64> {
    count(&std::fs::read_to_string("/proc/net/netstat").ok()?)
}

/// The file has a line of names and a line of values for each protocol.
fn count(netstat: &str) -> Option<u64> {
    let mut lines = netstat.lines().filter(|line| line.starts_with("TcpExt:"));
    let mut named = lines.next()?.split_whitespace().zip(lines.next()?.split_whitespace());
    named.find(|(name, _)| *name == "ListenDrops")?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_by_its_name() {
        let netstat = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 2 34\nIpExt: ListenDrops\nIpExt: 9\n";
        assert_eq!(count(netstat), Some(34));
        assert_eq!(count("IpExt: a\nIpExt: 1\n"), None);
    }
}
