//! Until when the core systems are believed.

use super::{Monitor, Number, push};

impl Monitor {
    /// When the first of the core systems' own certificates ends, in nanoseconds since 1970.
    pub(super) fn certificates_end(&self) -> Option<Number> {
        let help = "When the first certificate of a core system ends, since 1970; none in insecure mode.";
        let trust = self.security.as_ref()?.trust();
        let end_ns = trust.systems().iter().map(|system| trust.identity(*system).certificate().not_after().unix_nanos()).min();
        end_ns.map(|end_ns| ("bodkin_certificates_end_timestamp_seconds", help, end_ns))
    }

    /// Until when the core systems' own certificates count.
    pub(super) fn push_certificates(&self, text: &mut String) {
        const NAME: &str = "bodkin_certificate_end_timestamp_seconds";
        let help = "Last second in which the certificate of a core system counts, since 1970; none in insecure mode.";
        push(text, format_args!("# HELP {NAME} {help}\n# TYPE {NAME} gauge\n"));
        for trust in self.security.iter().map(|security| security.trust()) {
            for system in trust.systems() {
                let end = trust.identity(*system).certificate().not_after().unix_seconds();
                push(text, format_args!("{NAME}{{system=\"{}\"}} {end}\n", system.name()));
            }
        }
    }
}
