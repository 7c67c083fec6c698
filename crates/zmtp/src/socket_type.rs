//! Socket types and who may talk to whom (RFC 37, The Socket-Type Property).

use std::fmt::{self, Display, Formatter};

/// One of the eleven socket types that send and receive multipart messages. The thread-safe ones of ZMTP 3.1 (CLIENT, SERVER, RADIO and the
/// like) are refused by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the standard, which says what they do")]
pub enum SocketType {
    Req,
    Rep,
    Dealer,
    Router,
    Pub,
    Xpub,
    Sub,
    Xsub,
    Push,
    Pull,
    Pair,
}

impl SocketType {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Req,
        Self::Rep,
        Self::Dealer,
        Self::Router,
        Self::Pub,
        Self::Xpub,
        Self::Sub,
        Self::Xsub,
        Self::Push,
        Self::Pull,
        Self::Pair,
    ];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Req => "REQ",
            Self::Rep => "REP",
            Self::Dealer => "DEALER",
            Self::Router => "ROUTER",
            Self::Pub => "PUB",
            Self::Xpub => "XPUB",
            Self::Sub => "SUB",
            Self::Xsub => "XSUB",
            Self::Push => "PUSH",
            Self::Pull => "PULL",
            Self::Pair => "PAIR",
        }
    }

    /// The type of this name, in capitals.
    pub fn parse(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|socket_type| socket_type.name().as_bytes() == name)
    }

    /// What a server that serves every type is to a peer of this one.
    pub const fn counterpart(self) -> Self {
        match self {
            Self::Req => Self::Rep,
            Self::Rep => Self::Req,
            Self::Dealer => Self::Router,
            Self::Router => Self::Dealer,
            Self::Pub => Self::Sub,
            Self::Xpub => Self::Xsub,
            Self::Sub => Self::Pub,
            Self::Xsub => Self::Xpub,
            Self::Push => Self::Pull,
            Self::Pull => Self::Push,
            Self::Pair => Self::Pair,
        }
    }

    /// Whether the two may be connected; symmetrical.
    pub const fn may_talk_to(self, other: Self) -> bool {
        match self {
            Self::Req => matches!(other, Self::Rep | Self::Router),
            Self::Rep => matches!(other, Self::Req | Self::Dealer),
            Self::Dealer => matches!(other, Self::Rep | Self::Dealer | Self::Router),
            Self::Router => matches!(other, Self::Req | Self::Dealer | Self::Router),
            Self::Pub | Self::Xpub => matches!(other, Self::Sub | Self::Xsub),
            Self::Sub | Self::Xsub => matches!(other, Self::Pub | Self::Xpub),
            Self::Push => matches!(other, Self::Pull),
            Self::Pull => matches!(other, Self::Push),
            Self::Pair => matches!(other, Self::Pair),
        }
    }

    /// Whether messages of a peer of this type may be subscriptions.
    pub(crate) const fn subscribes(self) -> bool {
        matches!(self, Self::Sub | Self::Xsub)
    }

    /// Whether the property `Identity` means something from this type.
    pub(crate) const fn has_identity(self) -> bool {
        matches!(self, Self::Req | Self::Dealer | Self::Router)
    }
}

impl Display for SocketType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_its_type() {
        for socket_type in SocketType::ALL {
            assert_eq!(SocketType::parse(socket_type.name().as_bytes()), Some(socket_type));
        }
        for name in ["", "pub", "PUB ", "CLIENT", "RADIO"] {
            assert_eq!(SocketType::parse(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn who_may_talk_to_whom_is_symmetrical_and_counterparts_may() {
        for a in SocketType::ALL {
            assert!(a.may_talk_to(a.counterpart()), "{a}");
            for b in SocketType::ALL {
                assert_eq!(a.may_talk_to(b), b.may_talk_to(a), "{a} {b}");
            }
        }
        let pairs = SocketType::ALL.iter().flat_map(|a| SocketType::ALL.iter().filter(move |b| a.may_talk_to(**b))).count();
        assert_eq!(pairs, 21, "stars of these types in the table of RFC 37");
    }
}
