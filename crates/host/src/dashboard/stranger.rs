//! The page for a browser that may not see the dashboard: which cloud this is, and how an operator signs in.

use std::sync::LazyLock;

use bodkin_arrowhead::common_name::CloudCommonName;

use super::follower::escaped;
use crate::{
    answer::{Answer, SetCookie},
    document,
    request::Request,
};

/// The page; what differs is put in the place of its comments.
const PAGE: &str = include_str!("stranger.html");
/// The page that a redeemed link answers with.
const SIGNED_IN: &str = include_str!("signed_in.html");

/// The page loads nothing and runs nothing; its style is named by its hash.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let style = document::hash_of(PAGE, "style");
    format!("default-src 'none'; style-src {style}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
});

/// Returns the page with status 401 for a browser whose request was refused because of `why`.
pub fn page(cloud: &CloudCommonName, why: &str, port: u16) -> Answer {
    let page = PAGE
        .replace("<!--cloud-->", &escaped(&cloud.to_string()))
        .replace("<!--why-->", &escaped(why))
        .replace("<!--port-->", &port.to_string());
    html(401, page)
}

/// Returns why a browser is refused: it showed no certificate, or another one than this cloud's.
pub fn reason(request: &Request) -> String {
    match &request.caller {
        bodkin_arrowhead::caller::Caller::Certified(name) if !name.common_name.is_empty() => {
            format!("Your browser has shown the certificate of {}, which is no system of this cloud.", name.common_name)
        }
        _ => "Your browser has shown no certificate, and is not signed in.".to_owned(),
    }
}

/// Returns the page of a browser that is signed in now, which goes on to the dashboard.
///
/// The step is a page and not a redirect: a browser withholds a `SameSite=Strict` cookie from the target of a redirect that began at another site.
pub fn signed_in(name: &str, cookie: String) -> Answer {
    Answer { cookie: Some(Box::new(SetCookie(cookie))), ..html(200, SIGNED_IN.replace("<!--name-->", &escaped(name))) }
}

fn html(status: u16, page: String) -> Answer {
    Answer {
        content_type: Some("text/html;charset=UTF-8"),
        header: Some(("Content-Security-Policy", POLICY.clone())),
        ..Answer::text(status, page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_nothing_is_loaded() {
        let cloud = CloudCommonName::parse("plant.example.arrowhead.eu").unwrap();
        let answer = page(&cloud, "<script>\"&", 8540);
        let text = String::from_utf8(answer.body.clone()).unwrap();
        assert_eq!((answer.status, answer.content_type), (401, Some("text/html;charset=UTF-8")));
        assert!(text.contains("<strong>plant.example.arrowhead.eu</strong>") && text.contains("&lt;script&gt;&quot;&amp;"), "{text}");
        assert!(text.contains("ssh -L 8540:127.0.0.1:8540") && !text.contains("<!--"), "{text}");
        assert!(!text.contains("<script") && !text.contains("src=") && !text.contains("href="), "{text}");
        let policy = answer.header.unwrap().1;
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    }
}
