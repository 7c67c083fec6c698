//! Public keys that options name by a certificate.

use std::path::Path;

use bodkin_trust::{base64, file};

/// Base64 of the public key of the first certificate (PEM) of a file, as a record's `authenticationInfo` has it.
pub fn of_certificate(path: &str) -> Result<String, String> {
    let certificates = file::read_certificates(Path::new(path)).map_err(|error| error.to_string())?;
    let own = certificates.first().ok_or_else(|| format!("{path} has no certificate"))?;
    Ok(base64::encode(own.public_key_info()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_is_told_with_its_file() {
        let place = tempfile::tempdir().unwrap();
        let empty = place.path().join("empty.crt");
        std::fs::write(&empty, "").unwrap();
        for path in [empty, place.path().join("missing.crt")] {
            let told = of_certificate(path.to_str().unwrap()).unwrap_err();
            assert!(told.contains(path.to_str().unwrap()), "{told}");
        }
    }
}
