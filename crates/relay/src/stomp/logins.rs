//! Names and passcodes for the brokers that ask for them, as the operator writes them in a file.

use std::collections::BTreeMap;

use super::request::{Login, LoginError};

/// Brokers in a file.
pub const LOGINS_MAX: usize = 256;

/// Which broker is told which name and passcode: by its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logins(BTreeMap<(String, u16), Login>);

/// What is wrong with a file of logins. No passcode is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoginsError {
    /// A line is none.
    #[error("line {line} is no 'HOST:PORT NAME PASSCODE'")]
    Form {
        /// Counted from 1.
        line: usize,
    },
    /// A broker cannot be told this.
    #[error("line {line}: {error}")]
    Login {
        /// Counted from 1.
        line: usize,
        /// Why.
        error: LoginError,
    },
    /// A broker is there twice.
    #[error("line {line} is for a broker that a line above is for already")]
    Twice {
        /// Counted from 1.
        line: usize,
    },
    /// Too many.
    #[error("at most {LOGINS_MAX} brokers are in such a file")]
    TooMany,
}

impl Logins {
    /// Reads lines of `HOST:PORT NAME PASSCODE`; the passcode is the rest of its line. Empty lines and those that begin with `#` are passed over.
    pub fn parse(text: &str) -> Result<Self, LoginsError> {
        let mut logins = BTreeMap::new();
        for (at, said) in text.lines().enumerate().map(|(at, said)| (at + 1, said.trim())) {
            if said.is_empty() || said.starts_with('#') {
                continue;
            }
            let form = || LoginsError::Form { line: at };
            let (place, rest) = said.split_once(char::is_whitespace).ok_or_else(form)?;
            let (name, passcode) = rest.trim_start().split_once(char::is_whitespace).ok_or_else(form)?;
            let place = place_of(place).ok_or_else(form)?;
            let login = Login::new(name, passcode.trim_start()).map_err(|error| LoginsError::Login { line: at, error })?;
            if logins.insert(place, login).is_some() {
                return Err(LoginsError::Twice { line: at });
            }
            if logins.len() > LOGINS_MAX {
                return Err(LoginsError::TooMany);
            }
        }
        Ok(Self(logins))
    }

    /// What the broker at this place is told.
    pub fn of(&self, address: &str, port: u16) -> Option<&Login> {
        self.0.get(&(address.to_lowercase(), port))
    }
}

/// `HOST:PORT`; an IPv6 address is in brackets.
fn place_of(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = port.parse().ok().filter(|port| *port != 0)?;
    (!host.is_empty()).then(|| (host.to_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_is_told_what_its_line_says() {
        let text = "# brokers\n\nRelay.Example:61614 bodkin  a b:c \n[::1]:61613\tguest\tpass\r\n";
        let logins = Logins::parse(text).unwrap();
        assert_eq!(logins.of("relay.EXAMPLE", 61614), Some(&Login::new("bodkin", "a b:c").unwrap()));
        assert_eq!(logins.of("::1", 61613), Some(&Login::new("guest", "pass").unwrap()));
        assert_eq!((logins.of("relay.example", 61613), logins.of("relay.example.org", 61614)), (None, None));
        assert!(!format!("{logins:?}").contains("a b:c"));
    }

    #[test]
    fn what_is_no_line_is_told_by_its_number_and_without_its_passcode() {
        for text in ["a:1 b", "a:1", "a b c", "a:0 b c", ":1 b c", "a:65536 b c", "secret"] {
            assert_eq!(Logins::parse(&format!("x:1 y z\n{text}")), Err(LoginsError::Form { line: 2 }), "{text}");
        }
        let said = Logins::parse("a:1 b secret\nA:1 c secret").unwrap_err();
        assert!(said == LoginsError::Twice { line: 2 } && !said.to_string().contains("secret"));
        assert!(matches!(Logins::parse("a:1 b c\0d"), Err(LoginsError::Login { line: 1, .. })));
        let many: String = (1..=LOGINS_MAX + 1).map(|port| format!("a:{port} b c\n")).collect();
        assert_eq!(Logins::parse(&many), Err(LoginsError::TooMany));
    }
}
