//! The address of a system that does not know its own: taken from the connection its request came by (reference 1.7).

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
};

use crate::{
    address::{Address, AddressError},
    error::ArrowheadError,
    name::NamingRules,
};

/// Who a request came from, as far as its connection and headers tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The other end of the connection.
    pub peer: IpAddr,
    /// This end of it.
    pub local: IpAddr,
    /// Values of the header `Forwarded` (RFC 7239), in the order they came.
    pub forwarded: Vec<String>,
    /// Values of the header `X-Forwarded-For`.
    pub forwarded_for: Vec<String>,
}

/// Finds addresses, passing over proxies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressDetection {
    proxies: BTreeSet<IpAddr>,
}

impl AddressDetection {
    /// Requests from the addresses of `proxies` are those of whom they forward for; nobody else's headers are believed.
    pub fn new(proxies: impl IntoIterator<Item = IpAddr>) -> Self {
        Self { proxies: proxies.into_iter().map(|proxy| proxy.to_canonical()).collect() }
    }

    /// The address as given, or where there is none or a wrong one, that of the request's sender.
    pub fn locate(&self, given: Option<&str>, sender: &Sender, rules: &NamingRules, origin: &str) -> Result<String, ArrowheadError> {
        let refused = match Address::parse(given.unwrap_or_default(), rules) {
            Ok(address) => return Ok(address.as_str().to_owned()),
            Err(AddressError::TooLong) => return Err(ArrowheadError::database()),
            Err(refused) => refused,
        };
        let unsuccessful = |refused| ArrowheadError::bad_payload(format!("{refused} Address detection process was unsuccessful."), origin);
        let detected = self.address_of(sender).ok_or_else(|| unsuccessful(refused))?.to_string();
        Address::parse(&detected, rules).map(|address| address.as_str().to_owned()).map_err(unsuccessful)
    }

    fn address_of(&self, sender: &Sender) -> Option<IpAddr> {
        let peer = sender.peer.to_canonical();
        if !self.proxies.contains(&peer) {
            return Some(if peer.is_loopback() || peer.is_unspecified() { sender.local.to_canonical() } else { peer });
        }
        let forwarded = sender.forwarded.iter().flat_map(|value| value.split(',')).filter_map(forwarded_for);
        let forwarded_for = sender.forwarded_for.iter().flat_map(|value| value.split(','));
        self.last_before_proxies(forwarded).or_else(|| self.last_before_proxies(forwarded_for))
    }

    /// The last of the nodes that is no proxy of ours. One that is no IP address hides its sender, and whoever is in front of
    /// it was told by nobody we know.
    fn last_before_proxies<'n>(&self, nodes: impl DoubleEndedIterator<Item = &'n str>) -> Option<IpAddr> {
        nodes.rev().map(node_address).find(|node| node.is_none_or(|ip| !self.proxies.contains(&ip)))?
    }
}

/// The `for` parameter of an element of `Forwarded`.
fn forwarded_for(element: &str) -> Option<&str> {
    element.split(';').filter_map(|pair| pair.split_once('=')).find(|(name, _)| name.trim().eq_ignore_ascii_case("for")).map(|pair| pair.1)
}

/// An address with or without quotes, brackets and a port.
fn node_address(node: &str) -> Option<IpAddr> {
    let node = node.trim().trim_matches('"');
    let ip = node.parse::<SocketAddr>().map(|address| address.ip());
    let ip = ip.or_else(|_| node.trim_start_matches('[').trim_end_matches(']').parse());
    ip.ok().map(|ip: IpAddr| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// With the proxies 10.0.0.1 and 10.0.0.2.
    fn check(peer: &str, forwarded: &[&str], forwarded_for: &[&str], expected: Option<&str>) {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        let sender = Sender { peer: ip(peer), local: ip("192.0.2.1"), forwarded: texts(forwarded), forwarded_for: texts(forwarded_for) };
        let detection = AddressDetection::new([ip("10.0.0.1"), ip("10.0.0.2")]);
        assert_eq!(detection.address_of(&sender), expected.map(ip), "{sender:?}");
    }

    #[test]
    fn the_sender_is_the_peer_or_whom_a_proxy_names() {
        check("198.51.100.7", &["for=203.0.113.1"], &[], Some("198.51.100.7"));
        check("127.0.0.1", &[], &[], Some("192.0.2.1"));
        check("::ffff:198.51.100.7", &[], &[], Some("198.51.100.7"));
        check("10.0.0.1", &[], &[], None);
        check("10.0.0.1", &["for=203.0.113.1;proto=http, For=\"203.0.113.2:4711\""], &["203.0.113.9"], Some("203.0.113.2"));
        check("10.0.0.1", &["for=203.0.113.1", "by=x;for=10.0.0.2"], &[], Some("203.0.113.1"));
        check("10.0.0.1", &["for=\"[2001:db8::17]:4711\""], &[], Some("2001:db8::17"));
        check("10.0.0.1", &["for=\"[2001:db8::17]\""], &[], Some("2001:db8::17"));
        check("10.0.0.1", &["for=203.0.113.1, for=unknown"], &[], None);
        check("10.0.0.1", &["for=10.0.0.2"], &["203.0.113.8, 203.0.113.9, 10.0.0.2"], Some("203.0.113.9"));
    }

    #[test]
    fn a_good_address_stays_as_it_is_given() {
        let sender = Sender { peer: ip("198.51.100.7"), local: ip("192.0.2.1"), forwarded: Vec::new(), forwarded_for: Vec::new() };
        let detection = AddressDetection::default();
        let rules = NamingRules { allow_self_addressing: false, ..NamingRules::default() };
        let locate = |given, sender: &Sender| detection.locate(given, sender, &rules, "/x").map_err(|error| error.error_message);
        assert_eq!(locate(Some("Host.local"), &sender).unwrap(), "host.local");
        for wrong in [None, Some(""), Some("127.0.0.1"), Some("no_name")] {
            assert_eq!(locate(wrong, &sender).unwrap(), "198.51.100.7", "{wrong:?}");
        }
        let loopback = Sender { peer: ip("127.0.0.1"), local: ip("127.0.0.1"), ..sender };
        let refused = locate(None, &loopback).unwrap_err();
        assert!(refused.starts_with("Network address verification failure: ") && refused.ends_with("unsuccessful."), "{refused}");
    }
}
