//! Why TLS failed, in words that say what to do.

use std::{error::Error, io};

use bodkin_arrowhead::common_name::SystemCommonName;
use bodkin_trust::tls::told_host;
use rustls::{AlertDescription, CertificateError, InvalidMessage};

/// The words, where TLS is the reason of an error. `own_name` is that in our certificate.
pub(crate) fn told(error: &(dyn Error + 'static), own_name: Option<&SystemCommonName>) -> Option<String> {
    Some(match cause(error)? {
        rustls::Error::InvalidCertificate(wrong) => of_server(wrong),
        rustls::Error::AlertReceived(alert) => of_client(*alert, own_name),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "it speaks no TLS. It may be a cloud in insecure mode: call it without certificates (--insecure)".to_owned()
        }
        other => other.to_string(),
    })
}

/// rustls' own error, however deep it lies.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        // An I/O error does not give what it wraps as its source, but the source of that.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let found = wrapped.and_then(|wrapped| wrapped.downcast_ref()).or_else(|| error.downcast_ref());
        if found.is_some() {
            return found;
        }
        next = error.source();
    }
    None
}

/// What is wrong with the server's certificate.
fn of_server(wrong: &CertificateError) -> String {
    use CertificateError::*;
    match wrong {
        UnknownIssuer => {
            "its certificate leads to no authority that is trusted here. Is it the right cloud? Name its authority (--ca, or --trust)"
                .into()
        }
        Expired | ExpiredContext { .. } => "its certificate has expired. Renew it (bodkin cert renew), or correct this clock".into(),
        NotValidYet | NotValidYetContext { .. } => "its certificate does not count yet. Is one of the two clocks wrong?".into(),
        Revoked => "its certificate is revoked".into(),
        NotValidForNameContext { presented, .. } => {
            let names: Vec<&str> = presented.iter().map(|name| told_host(name)).collect();
            format!("its certificate is not made out for this host, but for {}. Call it by one of these", names.join(", "))
        }
        NotValidForName => "its certificate is not made out for this host. Call it by a name in the certificate".into(),
        other => format!("its certificate is refused: {other}"),
    }
}

/// Why the server refuses us.
fn of_client(alert: AlertDescription, own_name: Option<&SystemCommonName>) -> String {
    use AlertDescription::*;
    match (alert, own_name) {
        (CertificateRequired | BadCertificate | HandshakeFailure | NoCertificate, None) => {
            "it asks for a certificate: give one (--cert, or --trust)".into()
        }
        (UnknownCA, Some(name)) => format!("it does not know the authority that issued our certificate, {name}. Is it the right cloud?"),
        (CertificateExpired, Some(name)) => format!("our certificate, {name}, has expired for it. Renew it (bodkin cert renew)"),
        (CertificateRevoked, Some(name)) => format!("our certificate, {name}, is revoked. Have a new one issued (bodkin cert issue)"),
        (BadCertificate | UnsupportedCertificate | CertificateUnknown | AccessDenied | CertificateRequired, Some(name)) => {
            format!("it refuses our certificate, {name} ({alert:?}). The cloud's log says why")
        }
        _ => format!("it ended the connection: {alert:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_found_below_other_errors() {
        let wrapped = io::Error::other(rustls::Error::AlertReceived(AlertDescription::CertificateRequired));
        assert!(told(&wrapped, None).unwrap().contains("asks for a certificate"));
        let name = SystemCommonName::parse("a.cloud.operator.arrowhead.eu").unwrap();
        assert!(told(&wrapped, Some(&name)).unwrap().contains("it refuses our certificate, a.cloud.operator.arrowhead.eu"));
        assert_eq!(told(&io::Error::other("no TLS"), None), None);
    }

    #[test]
    fn every_reason_says_what_to_do() {
        let presented = vec![r#"DnsName("a.example")"#.to_owned(), "IpAddress(10.0.0.1)".to_owned()];
        let expected = rustls::pki_types::ServerName::try_from("localhost").unwrap();
        let wrong: [(rustls::Error, &str); 5] = [
            (CertificateError::UnknownIssuer.into(), "right cloud?"),
            (CertificateError::Expired.into(), "cert renew"),
            (CertificateError::NotValidYet.into(), "clocks"),
            (CertificateError::NotValidForNameContext { expected, presented }.into(), "for a.example, 10.0.0.1."),
            (InvalidMessage::InvalidContentType.into(), "--insecure"),
        ];
        for (error, part) in wrong {
            let told = told(&error, None).unwrap();
            assert!(told.contains(part), "{told}");
        }
    }
}
