//! The client certificate that this node presents to NATS servers: can it be read, and until when is it valid?

use std::path::Path;

use bodkin_arrowhead::utc::UtcTime;
use bodkin_host::NatsPlace;
use bodkin_trust::{Certificate, tls::now};

use super::{certificates::SYSTEM_SOON, finding::Finding};

const RENEW: &str = "put a renewed certificate and its key in the files; the next connection uses them";

/// Looks at the client certificate for these servers, if one is configured.
pub fn examine(check: &'static str, place: &NatsPlace) -> Option<Finding> {
    match place.tls.as_ref()?.certificate() {
        Ok(certificate) => certificate.map(|(file, certificate)| judge(check, &file, &certificate, now())),
        Err(error) => {
            Some(Finding::problem(check, error.to_string(), "without it no server that requires a client certificate is reached"))
        }
    }
}

fn judge(check: &'static str, file: &Path, certificate: &Certificate, now: UtcTime) -> Finding {
    let named = format!("client certificate {} of {}", file.display(), certificate.told_name());
    let (begin, end) = (certificate.not_before(), certificate.not_after());
    if now < begin {
        Finding::problem(check, format!("{named} is not valid before {begin}"), "correct this machine's clock, or replace the file")
    } else if now > end {
        Finding::problem(check, format!("{named} has expired at {end}"), RENEW)
    } else if end < now.plus(SYSTEM_SOON) {
        let due = certificate.renewal_due();
        Finding::warning(check, format!("{named} is valid until {end}, and was due for renewal at {due}"), RENEW)
    } else {
        Finding::ok(check, format!("{named} is valid until {end}"))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bodkin_arrowhead::common_name::CloudCommonName;
    use bodkin_trust::{Authority, authority::Profile};

    use super::{super::Verdict, *};

    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn validity_is_judged_by_the_time_that_is_left() {
        let begin = UtcTime::from_unix_seconds(1_800_000_000);
        let name = CloudCommonName::parse("local.bodkin.arrowhead.eu").expect("a name");
        let authority = Authority::root(begin, 1000 * DAY).and_then(|root| root.issue_cloud(&name, begin, 1000 * DAY)).expect("a CA");
        let profile = Profile { name: "edge-7".to_owned(), alternative_names: Vec::new(), now: begin, lifetime: 90 * DAY };
        let identity = authority.issue(&profile).expect("a certificate");
        let at = |now| judge("fleet", Path::new("/edge.pem"), identity.certificate(), now);
        for (now, verdict, words) in [
            (begin.minus(30 * DAY), Verdict::Problem, "/edge.pem of edge-7 is not valid before 20"),
            (begin.plus(DAY), Verdict::Ok, "is valid until"),
            (begin.plus(80 * DAY), Verdict::Warning, "was due for renewal at"),
            (begin.plus(91 * DAY), Verdict::Problem, "has expired at"),
        ] {
            let finding = at(now);
            assert!(finding.verdict == verdict && finding.found.contains(words), "{finding}");
        }
    }
}
