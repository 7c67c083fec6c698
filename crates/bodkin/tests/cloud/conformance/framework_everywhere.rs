//! The framework's answers (reference section 1.2) at every operation that a core system documents.

use std::sync::Arc;

use serde_json::Value;

use crate::support::cloud::{Cloud, System};
use crate::support::http::Answer;

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// One documented operation.
struct Operation {
    cloud: Arc<Cloud>,
    system: System,
    method: String,
    target: String,
    takes_body: bool,
    /// What its path takes besides.
    siblings: Vec<String>,
}

impl Operation {
    /// A request with this body, and with this content type where one is given.
    fn send(&self, method: &str, content_type: Option<&str>, body: Option<&[u8]>) -> (Answer, bool) {
        let headers: Vec<(&str, &str)> = content_type.map(|kind| ("Content-Type", kind)).into_iter().collect();
        let mut connection = self.cloud.connect(self.system);
        let answer = connection.request(method, &self.target, &headers, body).expect("an answer");
        let closed = answer.header("connection") == Some("close") && connection.is_closed_by_server();
        (answer, closed)
    }

    #[track_caller]
    fn refuses_empty(&self, status: u16, method: &str, content_type: Option<&str>, body: Option<&[u8]>) -> Answer {
        let (answer, _) = self.send(method, content_type, body);
        assert_eq!((answer.status, answer.text().as_str()), (status, ""), "{method} {} {content_type:?} {body:?}", self.target);
        assert_eq!(answer.header("content-type"), None, "{method} {}", self.target);
        answer
    }

    /// 400 BAD_PAYLOAD that names the whole URL.
    #[track_caller]
    fn refuses_with_url(&self, body: &[u8]) -> bool {
        let (answer, closed) = self.send(&self.method, Some("application/json"), Some(body));
        let claim = format!("{} {}: {}", self.method, self.target, answer.text());
        let error = answer.expect_status(400).json();
        let url = format!("http://{}{}", self.cloud.address(self.system), self.target);
        assert_eq!((error["exceptionType"].as_str(), error["origin"].as_str()), (Some("BAD_PAYLOAD"), Some(url.as_str())), "{claim}");
        closed
    }
}

/// Every operation of the core systems' documents, with 1 in the places of ids and names.
fn operations() -> Vec<Operation> {
    let cloud = Cloud::shared();
    let of_system = |system: System| {
        let cloud = cloud.clone();
        let answer = cloud.connect(system).request("GET", "/openapi.json", &[], None).expect("an answer");
        let document = answer.expect_status(200).json();
        let paths = document["paths"].as_object().expect("paths").clone();
        // Bodkin's own interface has errors of its own.
        let upstreams = paths.into_iter().filter(|(path, _)| !path.starts_with("/api/v1/"));
        upstreams.flat_map(move |(path, item)| of_path(&cloud, system, &path, &item))
    };
    System::CORE.into_iter().flat_map(of_system).collect()
}

fn of_path(cloud: &Arc<Cloud>, system: System, path: &str, item: &Value) -> Vec<Operation> {
    let parts: Vec<&str> = path.split('/').map(|part| if part.starts_with('{') { "1" } else { part }).collect();
    let members = item.as_object().expect("a path");
    let siblings: Vec<String> = members.keys().map(|method| method.to_uppercase()).collect();
    let operation = |(method, operation): (&String, &Value)| Operation {
        cloud: cloud.clone(),
        system,
        method: method.to_uppercase(),
        target: parts.join("/"),
        takes_body: operation.get("requestBody").is_some(),
        siblings: siblings.clone(),
    };
    members.iter().map(operation).collect()
}

#[test]
fn malformed_requests_are_refused_by_every_operation() {
    let operations = operations();
    assert!(operations.len() >= 40, "{}", operations.len());
    for operation in &operations {
        if !operation.takes_body {
            operation.refuses_with_url(b"{}");
            continue;
        }
        let method = operation.method.as_str();
        operation.refuses_empty(400, method, Some("application/json"), None);
        operation.refuses_empty(415, method, Some("text/plain"), Some(b"{}"));
        operation.refuses_empty(415, method, None, Some(b"{}"));
        assert!(operation.refuses_with_url(b""), "{method} {} stays open", operation.target);
        // Without keys a token request is refused before its body is read.
        if !operation.target.starts_with("/authorization/token") {
            for body in [&b"{"[..], b"nonsense", b"\"text\"", b"\xff\xfe"] {
                operation.refuses_empty(400, method, Some("application/json"), Some(body));
            }
        }
    }
}

#[test]
fn other_methods_are_refused_at_every_path() {
    for operation in operations() {
        for method in METHODS.into_iter().filter(|method| !operation.siblings.iter().any(|sibling| sibling == method)) {
            let body: Option<&[u8]> = matches!(method, "POST" | "PUT" | "PATCH").then_some(b"{}");
            let answer = operation.refuses_empty(405, method, body.map(|_| "application/json"), body);
            let allow = answer.header("allow").unwrap_or_default();
            let missing = operation.siblings.iter().find(|sibling| !allow.split(", ").any(|allowed| allowed == *sibling));
            assert_eq!(missing, None, "{method} {}: {allow}", operation.target);
        }
    }
}
