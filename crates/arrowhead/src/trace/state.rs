//! The W3C's `tracestate`: what those who take part in a trace say of it to each other, beside which trace it is (Trace Context, section 3.3). Bodkin adds nothing to it.

use std::{fmt, sync::Arc};

/// The key of an event's metadata under which it is carried; the header's name too.
pub const STATE_KEY: &str = "tracestate";
/// Members of a list; one with more is none (section 3.3.1.1).
pub const MEMBERS_MAX: usize = 32;
/// Characters that are handed on: of a longer list whole members are left out (section 3.3.1.5).
pub const STATE_CHARACTERS_MAX: usize = 512;
/// Members longer than this are left out first.
const MEMBER_KEPT_MAX: usize = 128;
/// Characters of a value, and of a key without a tenant.
const PART_MAX: usize = 256;
/// Characters of a tenant, and of the system behind it.
const TENANT_MAX: usize = 241;
const SYSTEM_MAX: usize = 14;

/// A list of members `key=value`, as it is handed on: never empty, and at most [`STATE_CHARACTERS_MAX`] characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceState(Arc<str>);

impl TraceState {
    /// Reads a list that may come in several fields, in their order; `None`: it has no member, or one that is none, or too many, and nothing of it counts.
    pub fn parse<'f>(fields: impl IntoIterator<Item = &'f [u8]>) -> Option<Self> {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let mut members: Vec<&str> = Vec::new();
        for member in fields.into_iter().flat_map(|field| field.split(|byte| *byte == b',')) {
            let Some(begin) = member.iter().position(|byte| !is_blank(byte)) else { continue };
            let end = member.iter().rposition(|byte| !is_blank(byte)).map_or(begin, |at| at + 1);
            let member = &member[begin..end];
            if members.len() == MEMBERS_MAX || !is_member(member) {
                return None;
            }
            members.push(std::str::from_utf8(member).ok()?);
        }
        shorten(&mut members);
        (!members.is_empty()).then(|| Self(members.join(",").into()))
    }

    /// As a header has it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TraceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Leaves whole members out until the list is short enough: long ones first, then those at its end, who took part the longest ago.
fn shorten(members: &mut Vec<&str>) {
    let commas = |members: &[&str]| members.len().saturating_sub(1);
    while members.iter().map(|member| member.len()).sum::<usize>() + commas(members) > STATE_CHARACTERS_MAX {
        match members.iter().rposition(|member| member.len() > MEMBER_KEPT_MAX) {
            Some(long) => _ = members.remove(long),
            None => _ = members.pop(),
        }
    }
}

/// Whether these are a key and its value.
fn is_member(member: &[u8]) -> bool {
    let Some(at) = member.iter().position(|byte| *byte == b'=') else { return false };
    let (key, value) = (&member[..at], &member[at + 1..]);
    let is_value = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'=');
    is_key(key) && (1..=PART_MAX).contains(&value.len()) && value.iter().all(is_value)
}

fn is_key(key: &[u8]) -> bool {
    let is_inner = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/');
    let is_whole = |part: &[u8], length_max: usize| (1..=length_max).contains(&part.len()) && part.iter().all(is_inner);
    match key.iter().position(|byte| *byte == b'@') {
        None => is_whole(key, PART_MAX) && key[0].is_ascii_lowercase(),
        Some(at) => {
            let (tenant, system) = (&key[..at], &key[at + 1..]);
            let begins = |part: &[u8], may: fn(&u8) -> bool| part.first().is_some_and(may);
            is_whole(tenant, TENANT_MAX)
                && begins(tenant, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
                && is_whole(system, SYSTEM_MAX)
                && begins(system, u8::is_ascii_lowercase)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(fields: &[&str]) -> Option<String> {
        TraceState::parse(fields.iter().map(|field| field.as_bytes())).map(|state| state.to_string())
    }

    #[test]
    fn the_recommendations_examples_are_handed_on() {
        for text in ["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "congo=ucfJifl5GOE,rojo=00f067aa0ba902b7", "fw529a3039@dt=FfA4Qm!~ \\\"x;"]
        {
            assert_eq!(parse(&[text]).as_deref(), Some(text));
        }
        // Fields are one list (RFC 9110, section 5.3); what is empty is no member, and blanks around one are not its own.
        assert_eq!(parse(&["a=1", "", " b=2 ,\t,c= 3"]).as_deref(), Some("a=1,b=2,c= 3"));
        // Whoever has said a thing twice is not put right here.
        assert_eq!(parse(&["a=1,a=2"]).as_deref(), Some("a=1,a=2"));
        assert_eq!((parse(&[]), parse(&[""]), parse(&[" ,\t"])), (None, None, None));
    }

    #[test]
    fn one_wrong_member_spoils_the_list() {
        let wrong = [
            "a", "=1", "a=", "A=1", "a.b=1", "0a=1", "a=1=2", "a=\u{7f}", "a=\u{f6}", "a@=1", "@a=1", "a@@b=1", "a@b@c=1", "a@0=1", "a b=1",
        ];
        for member in wrong {
            assert_eq!(parse(&[&format!("x=1,{member}")]), None, "{member}");
        }
        let lengths = |tenant: usize, system: usize| parse(&[&format!("{}@{}=1", "0".repeat(tenant), "s".repeat(system))]).is_some();
        assert_eq!((lengths(241, 14), lengths(242, 14), lengths(241, 15)), (true, false, false));
        let simple = |key: usize, value: usize| parse(&[&format!("{}={}", "k".repeat(key), "v".repeat(value))]);
        assert_eq!((simple(257, 1), simple(1, 257)), (None, None));
        assert!(simple(255, 256).is_some_and(|text| text.len() == 512));
    }

    #[test]
    fn there_are_32_members_and_512_characters_at_the_most() {
        let list = |count: usize| (0..count).map(|at| format!("k{at}=v")).collect::<Vec<_>>().join(",");
        assert_eq!(parse(&[&list(32)]), Some(list(32)));
        assert_eq!(parse(&[&list(33)]), None);
        // The first one is too long to stay; then the last ones go.
        let member = |key: &str, length: usize| format!("{key}={}", "v".repeat(length - key.len() - 1));
        let long = format!("{},{}", member("a", 200), ["b", "c", "d", "e"].map(|key| member(key, 100)).join(","));
        assert_eq!(parse(&[&long]), Some(["b", "c", "d", "e"].map(|key| member(key, 100)).join(",")));
        let short = ["a", "b", "c", "d", "e", "f"].map(|key| member(key, 100)).join(",");
        assert_eq!(parse(&[&short]), Some(["a", "b", "c", "d", "e"].map(|key| member(key, 100)).join(",")));
        // The longest member that there may be has 513 characters.
        assert_eq!(parse(&[&format!("{}={}", "k".repeat(256), "v".repeat(256))]), None);
    }
}
