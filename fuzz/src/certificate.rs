//! Certificates, keys, requests, revocation lists and key stores, in whichever form.

use bodkin_trust::{
    Certificate, PrivateKey,
    content::{Item, read},
};

/// What opens the seeds that are encrypted.
const PASSWORD: &str = "fuzz-seed";

/// What is read is written, and read again as the same.
pub fn certificate(bytes: &[u8]) {
    let Ok((_, items)) = read(bytes, Some(PASSWORD)) else { return };
    for item in items {
        match item {
            Item::Certificate(one) => {
                assert_eq!(Certificate::from_pem(one.to_pem().as_bytes()).expect("it was read"), [*one.clone()]);
                assert!(one.renewal_due() <= one.not_after() || one.not_after() < one.not_before());
            }
            Item::Key(key) => {
                let again = PrivateKey::from_pem(key.to_pem().as_bytes()).expect("it was read");
                assert_eq!((again.pkcs8(), again.public_key_info()), (key.pkcs8(), key.public_key_info()));
            }
            Item::Request(request) => assert!(request.key_kind().is_strong(), "{:?}", request.key_kind()),
            Item::RevocationList(list) => assert!(list.revoked.iter().all(|entry| entry.serial.first() != Some(&0))),
            Item::EncryptedKey => panic!("there is a password"),
        }
    }
}
