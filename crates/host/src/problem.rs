//! Errors below `/api/v1` as problem details (RFC 9457), whoever refuses: the one place that makes one of a refusal in another form.

use bodkin_arrowhead::error::ArrowheadError;
use serde_json::Map;

use crate::{answer::Answer, api};

/// What problem details are called.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Whether a request's target, or path, is of Bodkin's own interface.
pub fn is_told_at(target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    path.starts_with(api::BASE) || path == api::BASE.trim_end_matches('/')
}

/// The answer to a request of Bodkin's own interface: an error that is no problem yet becomes one, with its status, its words and its header.
pub fn told(answer: Answer) -> Answer {
    if answer.status < 400 || answer.content_type == Some(MEDIA_TYPE) {
        return answer;
    }
    let (detail, members) = words(&answer);
    let problem = Answer::problem_with(answer.status, &detail, members);
    let Answer { header, permission, close, live, account, .. } = answer;
    Answer { header, permission, close, live, account, ..problem }
}

/// What the refusal says, and of a core system's the kind that it gives it.
fn words(answer: &Answer) -> (String, Map<String, serde_json::Value>) {
    if let Ok(error) = serde_json::from_slice::<ArrowheadError>(&answer.body) {
        let kind = serde_json::to_value(error.exception_type).expect("a kind is a word");
        return (error.error_message, Map::from_iter([("exceptionType".to_owned(), kind)]));
    }
    let is_text = answer.content_type.is_some_and(|kind| kind.starts_with("text/plain"));
    let text = is_text.then(|| String::from_utf8_lossy(&answer.body).trim().to_owned()).filter(|text| !text.is_empty());
    let allowed = answer.header.as_ref().filter(|(name, _)| *name == "Allow").map(|(_, methods)| methods);
    let told = text.unwrap_or_else(|| match (answer.status, allowed) {
        (400, _) => {
            "The request is malformed: a parameter is missing or is no value of its type, or the body is no JSON of its form.".to_owned()
        }
        (404, _) => "Nothing is at this path. What there is says /openapi.json.".to_owned(),
        (405, Some(methods)) => format!("This resource takes {methods}."),
        (415, _) => "The body is not said to be of a type that is taken: Content-Type: application/json.".to_owned(),
        _ => "The request was not carried out.".to_owned(),
    });
    (told, Map::new())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::answer::Refusal;

    fn problem(answer: Answer) -> (Value, Answer) {
        let told = told(answer);
        assert_eq!(told.content_type, Some(MEDIA_TYPE));
        let body: Value = serde_json::from_slice(&told.body).unwrap();
        assert_eq!((&body["type"], &body["status"]), (&"about:blank".into(), &told.status.into()));
        (body, told)
    }

    #[test]
    fn its_own_interface_is_what_begins_so() {
        for target in ["/api/v1", "/api/v1/", "/api/v1/events", "/api/v1/events?event_type=x", "/api/v1?x"] {
            assert!(is_told_at(target), "{target}");
        }
        for target in ["/", "", "/api/v10", "/eventhandler/publish?at=/api/v1/", "/api/v2/events", "/metrics"] {
            assert!(!is_told_at(target), "{target}");
        }
    }

    #[test]
    fn a_refusal_keeps_its_status_its_words_and_when_to_come_back() {
        let refusal = Answer { header: Some(("Retry-After", "1".into())), ..Refusal::from(ArrowheadError::too_fast("Slower.")).into() };
        let (body, told) = problem(refusal.because("why"));
        assert_eq!((told.status, &body["title"], &body["detail"]), (429, &"Too Many Requests".into(), &"Slower.".into()));
        assert!(body["exceptionType"].is_string() && told.header.is_some_and(|(name, _)| name == "Retry-After") && told.account.is_some());
    }

    #[test]
    fn what_says_nothing_is_told_in_words() {
        let allow = |answer| Answer { header: Some(("Allow", "GET, POST".into())), ..answer };
        let cases = [
            (Answer::empty(400), "malformed"),
            (allow(Answer::empty(405)), "takes GET, POST."),
            (Answer::empty(415), "application/json"),
            (Answer::text(413, "The body is longer."), "The body is longer."),
            (Answer::not_found("/api/v1/x", bodkin_arrowhead::utc::UtcTime::from_unix_seconds(1)), "/openapi.json"),
            (Answer::empty(500), "not carried out"),
        ];
        for (answer, said) in cases {
            let (status, (body, told)) = (answer.status, problem(answer));
            assert_eq!(told.status, status);
            assert!(body["detail"].as_str().is_some_and(|detail| detail.contains(said)), "{body}");
        }
    }

    #[test]
    fn what_is_no_error_or_a_problem_already_stays_as_it_is() {
        let kept = [Answer::text(200, "ok"), Answer::empty(304), Answer::problem(404, "There is none.")];
        for answer in kept {
            assert_eq!(told(answer.clone()), answer);
        }
    }
}
