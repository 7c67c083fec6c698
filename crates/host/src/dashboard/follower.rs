//! The page of a node of a pair that does not lead: it says which one does, and where that one's dashboard is.

use bodkin_store::leader::LeaderPlace;

use super::policy;
use crate::{answer::Answer, control::now, host_name, pair::Leadership, request::Request};

/// The page; what differs is put in the place of its comments.
const PAGE: &str = include_str!("follower.html");

/// Heading and text while another node leads.
const FOLLOWS: (&str, &str) = (
    "Another node of the pair leads",
    "This node follows: it keeps what the other one has, and takes over where that one is gone. Until then it shows and changes nothing of the cloud.",
);
/// Heading and text while this node finds no leader.
const FINDS_NO_LEADER: (&str, &str) = (
    "No leader of the pair is found",
    "This node finds no leader, and cannot lead: <code>bodkin status</code> of this node says why. It shows and changes nothing of the cloud.",
);

/// The files that it is made of, which are served though this node does not lead.
pub const FILES: [&str; 3] = ["/", "/dashboard.css", "/icon.svg"];

/// The page, 503 as everything here but what it links: the service is at the other node.
pub fn page(request: &Request, leadership: &Leadership, leader: Option<&LeaderPlace>, event_handler_port: u16) -> Answer {
    let told = match leader {
        Some(place) => {
            let address = address(request, place);
            format!("<p>Dashboard of the last known leader: <a href=\"{address}\">{address}</a></p>")
        }
        None => "<p>The leader's address is not known here: no node has led since the pair was made, or this node has no copy yet.</p>"
            .to_owned(),
    };
    let epoch = match leadership.epoch().0 {
        0 => "none".to_owned(),
        epoch => epoch.to_string(),
    };
    let (heading, state) = if leadership.has_no_leader() { FINDS_NO_LEADER } else { FOLLOWS };
    let page = PAGE
        .replace("<!--heading-->", heading)
        .replace("<!--state-->", state)
        .replace("<!--leader-->", &told)
        .replace("<!--epoch-->", &epoch)
        .replace("<!--at-->", &now().whole_seconds().to_string());
    Answer {
        content_type: Some("text/html;charset=UTF-8"),
        header: Some(("Content-Security-Policy", policy(request, event_handler_port))),
        ..Answer::text(503, page)
    }
}

/// Where the leader's dashboard is for who reads this: a pair on one machine is reached under whichever name this node was called by.
fn address(request: &Request, place: &LeaderPlace) -> String {
    let called = request.url.split_once("://").and_then(|(_, rest)| host_name::name_of(rest.split('/').next()?));
    let is_here = ["localhost", "127.0.0.1", "::1", "[::1]"].contains(&place.host.as_str());
    escaped(&url(place, called.filter(|_| is_here).unwrap_or(&place.host)))
}

/// The address of the leader's own port, under this name of its host.
pub fn url(place: &LeaderPlace, host: &str) -> String {
    let scheme = if place.secure { "https" } else { "http" };
    format!("{scheme}://{}/", host_and_port(place, host))
}

/// The same as `HOST:PORT`.
pub fn host_and_port(place: &LeaderPlace, host: &str) -> String {
    let host = if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() };
    format!("{host}:{}", place.monitor_port)
}

/// A text as an attribute's or an element's content.
pub(super) fn escaped(text: &str) -> String {
    let escape = |character| match character {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        other => other.to_string(),
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::caller::Caller;

    use super::*;
    use crate::request::Method;

    fn told(url: &str, leader: Option<LeaderPlace>) -> String {
        let request = Request {
            caller: Caller::Anonymous,
            sender: None,
            method: Method::Get,
            path: "/".into(),
            query: Vec::new(),
            url: url.into(),
            content_type: String::new(),
            bearer: None,
            if_none_match: None,
            accepts_html: false,
            is_forged: false,
            trace: None,
            says_empty: false,
            body: Vec::new(),
        };
        let answer = page(&request, &Leadership::default(), leader.as_ref(), 8455);
        assert_eq!((answer.status, answer.content_type), (503, Some("text/html;charset=UTF-8")));
        String::from_utf8(answer.body).unwrap()
    }

    #[test]
    fn the_page_leads_to_the_leader() {
        let place = |host: &str, secure| Some(LeaderPlace { host: host.into(), monitor_port: 9440, secure });
        let cases = [
            ("http://second:8440/", place("first.example", false), "href=\"http://first.example:9440/\""),
            ("https://second:8440/", place("first.example", true), "href=\"https://first.example:9440/\""),
            ("http://plant:8440/", place("127.0.0.1", false), "href=\"http://plant:9440/\""),
            ("http://[::1]:8440/", place("127.0.0.1", false), "href=\"http://[::1]:9440/\""),
            ("http://second:8440/", place("2001:db8::1", false), "href=\"http://[2001:db8::1]:9440/\""),
            ("http://second:8440/", None, "not known here"),
        ];
        for (url, leader, expected) in cases {
            let page = told(url, leader);
            assert!(page.contains(expected) && !page.contains("<!--"), "{expected} is not in {page}");
        }
        assert!(told("http://s/", place("<script>\"&", false)).contains("http://&lt;script&gt;&quot;&amp;:9440/"));
    }

    #[test]
    fn the_page_loads_only_what_is_served_here() {
        for attribute in PAGE.split("href=\"").skip(1) {
            let target = attribute.split('"').next().unwrap();
            assert!(FILES.contains(&target.trim_start_matches('.')), "{target}");
        }
        assert!(!PAGE.contains("<script") && !PAGE.contains("<style") && !PAGE.contains("src="), "{PAGE}");
    }
}
