//! The dashboard: the files that `web` builds, served on Bodkin's own port from inside the binary.
//!
//! They are few and their names do not change with what is in them, so a browser asks for each every time and is answered 304 while it has the
//! same (RFC 9110, section 15.4.5): no page of one version runs with the script of another.

pub mod follower;
pub mod sign_in;
pub mod stranger;

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::LazyLock,
};

use crate::{answer::Answer, document, host_name, request::Request};

/// A file of the dashboard.
struct File {
    path: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

/// `page!("/", "index.html", "text/html")`: a file of the build.
macro_rules! file {
    ($path:literal, $name:literal, $content_type:literal) => {
        File { path: $path, content_type: $content_type, bytes: include_bytes!(concat!("../../../web/dist/", $name)) }
    };
}

const FILES: [File; 5] = [
    file!("/", "index.html", "text/html;charset=UTF-8"),
    file!("/dashboard.js", "dashboard.js", "text/javascript;charset=UTF-8"),
    file!("/dashboard.css", "dashboard.css", "text/css;charset=UTF-8"),
    file!("/icon.svg", "icon.svg", "image/svg+xml"),
    file!("/licences.txt", "licences.txt", "text/plain;charset=UTF-8"),
];

/// The entity tag of each, in the order of [`FILES`]: a hash, so that it is another one where a single byte is.
static ENTITY_TAGS: LazyLock<[String; FILES.len()]> = LazyLock::new(|| {
    FILES.each_ref().map(|file| {
        let mut hasher = DefaultHasher::new();
        file.bytes.hash(&mut hasher);
        format!("\"{:016x}\"", hasher.finish())
    })
});

/// The answer, if the path is one of the dashboard's. Its pages call this port and that of the Event Handler, and load nothing from elsewhere.
pub fn answer(request: &Request, event_handler_port: u16) -> Option<Answer> {
    let at = FILES.iter().position(|file| file.path == request.path)?;
    let (file, tag) = (&FILES[at], &ENTITY_TAGS[at]);
    let is_kept = request.if_none_match.as_deref().is_some_and(|tags| names(tags, tag));
    let answer = if is_kept {
        Answer::empty(304)
    } else {
        let header = Some(("Content-Security-Policy", policy(request, event_handler_port)));
        Answer { content_type: Some(file.content_type), header, body: file.bytes.to_vec(), ..Answer::empty(200) }
    };
    Some(document::read_only(request.method, Answer { entity_tag: Some(tag), ..answer }))
}

/// Returns the policy of the dashboard's pages.
///
/// They call the Event Handler by the host under which they were called, in the scheme of the page.
fn policy(request: &Request, event_handler_port: u16) -> String {
    let event_handler = called_host(request).map(|host| format!(" {host}:{event_handler_port}")).unwrap_or_default();
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'{event_handler}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// Returns the host under which this port was called, if a policy can name that host.
///
/// A policy cannot name an IPv6 address (Content Security Policy Level 3, section 2.3.1).
fn called_host(request: &Request) -> Option<&str> {
    let (_, rest) = request.url.split_once("://")?;
    let host = host_name::name_of(rest.split(['/', '?']).next()?)?;
    let is_host = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    is_host.then_some(host)
}

/// Whether a list of entity tags names this one; weak ones are compared as strong ones are (RFC 9110, section 13.1.2).
fn names(tags: &str, tag: &str) -> bool {
    tags.split(',').map(|listed| listed.trim()).any(|listed| listed == "*" || listed.strip_prefix("W/").unwrap_or(listed) == tag)
}

#[cfg(test)]
mod tests {
    use bodkin_arrowhead::caller::Caller;

    use super::*;
    use crate::request::Method;

    /// Bytes of all files together, as they are sent.
    const BYTES_MAX: usize = 500_000;

    fn request(method: Method, path: &str, if_none_match: Option<&str>) -> Request {
        Request {
            caller: Caller::Anonymous,
            sender: None,
            method,
            path: path.into(),
            query: Vec::new(),
            url: format!("http://h:8440{path}"),
            content_type: String::new(),
            bearer: None,
            if_none_match: if_none_match.map(str::to_owned),
            accepts_html: false,
            is_forged: false,
            trace: None,
            says_empty: false,
            body: Vec::new(),
        }
    }

    fn ask(method: Method, path: &str, if_none_match: Option<&str>) -> Option<Answer> {
        answer(&request(method, path, if_none_match), 8455)
    }

    #[test]
    fn what_a_browser_has_is_not_sent_again() {
        for file in &FILES {
            let whole = ask(Method::Get, file.path, None).unwrap();
            assert_eq!((whole.status, &*whole.body, whole.content_type), (200, file.bytes, Some(file.content_type)), "{}", file.path);
            let tag = whole.entity_tag.unwrap();
            for (listed, status) in [
                (tag.to_owned(), 304),
                (format!("\"other\", W/{tag}"), 304),
                ("*".to_owned(), 304),
                ("\"other\"".to_owned(), 200),
                (tag.trim_matches('"').to_owned(), 200),
                (String::new(), 200),
            ] {
                let again = ask(Method::Get, file.path, Some(&listed)).unwrap();
                assert_eq!((again.status, again.entity_tag), (status, Some(tag)), "{} {listed}", file.path);
                assert_eq!(again.body.is_empty(), status == 304);
            }
        }
        assert!(ask(Method::Get, "/elsewhere", None).is_none());
        assert_eq!(ask(Method::Post, "/", None).unwrap().status, 405);
    }

    #[test]
    fn entity_tags_differ() {
        let mut tags: Vec<&String> = ENTITY_TAGS.iter().collect();
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), FILES.len());
    }

    #[test]
    fn the_page_loads_nothing_that_is_not_served_and_has_no_script_of_its_own() {
        let page = std::str::from_utf8(FILES[0].bytes).unwrap();
        let policy = ask(Method::Get, "/", None).unwrap().header.unwrap().1;
        assert!(policy.starts_with("default-src 'none'; script-src 'self';") && policy.contains("connect-src 'self' h:8455;"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        for (attribute, opening) in [("src=\"", "<script "), ("href=\"", "<link ")] {
            for element in page.split(opening).skip(1) {
                let target = element.split(attribute).nth(1).and_then(|rest| rest.split('"').next()).expect("it is loaded from a file");
                let path = target.strip_prefix('.').unwrap_or(target);
                assert!(FILES.iter().any(|file| file.path == path), "{target} is not served");
            }
        }
        assert!(!page.contains("<script>") && !page.contains("<style"), "{page}");
        assert!(!page.contains("//"), "the page names another place: {page}");
    }

    #[test]
    fn policy_names_called_host_only() {
        let connect = |host: &str| {
            let request = Request { url: format!("http://{host}/"), ..request(Method::Get, "/", None) };
            let policy = answer(&request, 8455).unwrap().header.unwrap().1;
            assert!(!policy.contains('*'), "{policy}");
            policy.split("; ").find_map(|part| part.strip_prefix("connect-src ")).unwrap().to_owned()
        };
        let cases = [
            ("127.0.0.1:8440", "'self' 127.0.0.1:8455"),
            ("Plant-7.example", "'self' Plant-7.example:8455"),
            ("plant.example.:8440", "'self' plant.example:8455"),
            ("[::1]:8440", "'self'"),
            ("", "'self'"),
            ("*:8440", "'self'"),
            ("a;script-src b:8440", "'self'"),
            ("a b", "'self'"),
        ];
        for (host, expected) in cases {
            assert_eq!(connect(host), expected, "{host}");
        }
    }

    #[test]
    fn the_dashboard_is_small() {
        let bytes: usize = FILES.iter().map(|file| file.bytes.len()).sum();
        assert!(bytes < BYTES_MAX, "{bytes}");
    }
}
