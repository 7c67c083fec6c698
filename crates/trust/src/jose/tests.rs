//! What is taken, and that nothing else is.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{encryption::seal_under, signature::sign_under, *};
use crate::{
    base64,
    key::{KeySize, PrivateKey},
};

const BYTES_MAX: usize = 8 * 1024;

struct Pair {
    signing: SigningKey,
    verifying: VerifyingKey,
    sealing: SealingKey,
    opening: OpeningKey,
    public_key_info: Vec<u8>,
}

impl Pair {
    fn generate() -> Self {
        let key = PrivateKey::generate(KeySize::Bits2048).unwrap();
        let public_key_info = key.public_key_info();
        Self {
            signing: SigningKey::new(&key).unwrap(),
            verifying: VerifyingKey::new(&public_key_info).unwrap(),
            sealing: SealingKey::new(&public_key_info).unwrap(),
            opening: OpeningKey::new(&key).unwrap(),
            public_key_info,
        }
    }
}

static SENDER: LazyLock<Pair> = LazyLock::new(Pair::generate);
static RECIPIENT: LazyLock<Pair> = LazyLock::new(Pair::generate);

fn claims() -> Value {
    json!({"cid": "consumer.cloud.operator", "exp": 1_900_000_000})
}

fn message() -> String {
    seal_claims(&claims(), &SENDER.signing, &RECIPIENT.sealing).unwrap()
}

fn read(message: &str) -> Result<Value, Refused> {
    open_claims(message, &RECIPIENT.opening, &SENDER.verifying, BYTES_MAX)
}

#[test]
fn what_is_sealed_is_opened_by_its_recipient() {
    let text = message();
    assert_eq!(read(&text), Ok(claims()));
    assert_ne!(text, message(), "the content key and the initialization vector are fresh");
    assert_eq!(text.split('.').count(), 5);
    assert_eq!(
        base64::decode_url_safe(text.split('.').next().unwrap()).unwrap(),
        br#"{"alg":"RSA-OAEP-256","enc":"A256CBC-HS512","cty":"JWT"}"#
    );
    let signed = open(&text, &RECIPIENT.opening).unwrap();
    let header = std::str::from_utf8(&signed).unwrap().split('.').next().unwrap();
    assert_eq!(base64::decode_url_safe(header).unwrap(), br#"{"alg":"RS512"}"#);
}

#[test]
fn another_recipient_and_another_sender_are_refused() {
    let text = message();
    assert_eq!(open_claims::<Value>(&text, &SENDER.opening, &SENDER.verifying, BYTES_MAX), Err(Refused));
    assert_eq!(open_claims::<Value>(&text, &RECIPIENT.opening, &RECIPIENT.verifying, BYTES_MAX), Err(Refused));
}

#[test]
fn a_message_beyond_its_limit_is_refused() {
    let text = message();
    let read = |bytes_max| open_claims::<Value>(&text, &RECIPIENT.opening, &SENDER.verifying, bytes_max);
    assert_eq!((read(text.len()).is_ok(), read(text.len() - 1)), (true, Err(Refused)));
}

#[test]
fn a_message_with_any_one_character_changed_is_refused() {
    let text = message();
    for (place, character) in text.char_indices() {
        let other = if character == 'A' { 'B' } else { 'A' };
        let changed = format!("{}{other}{}", &text[..place], &text[place + 1..]);
        assert_eq!(read(&changed), Err(Refused), "{other} at {place} in place of {character}");
    }
}

#[test]
fn a_message_cut_off_or_drawn_out_anywhere_is_refused() {
    let text = message();
    for place in 0..text.len() {
        assert_eq!(read(&text[..place]), Err(Refused), "cut at {place}");
        assert_eq!(read(&text[place + 1..]), Err(Refused), "cut up to {place}");
    }
    for tail in [".", "A", "AAAA", ".AAAA", " ", "\n", "="] {
        assert_eq!(read(&format!("{text}{tail}")), Err(Refused), "{tail:?} behind it");
    }
}

#[test]
fn other_algorithms_around_are_refused() {
    let signed = sign(claims().to_string().as_bytes(), &SENDER.signing).unwrap();
    let read_under = |header: &str| read(&seal_under(header, signed.as_bytes(), &ContentKey::draw(&RECIPIENT.sealing).unwrap()));
    let good = r#"{"typ":"JWT","kid":"7","cty":"JWT","enc":"A256CBC-HS512","alg":"RSA-OAEP-256"}"#;
    assert_eq!(read_under(good), Ok(claims()), "order and other members do not matter");
    for header in [
        r#"{"alg":"none","enc":"A256CBC-HS512","cty":"JWT"}"#,
        r#"{"alg":"dir","enc":"A256CBC-HS512","cty":"JWT"}"#,
        r#"{"alg":"RSA-OAEP","enc":"A256CBC-HS512","cty":"JWT"}"#,
        r#"{"alg":"RSA1_5","enc":"A256CBC-HS512","cty":"JWT"}"#,
        r#"{"alg":"rsa-oaep-256","enc":"A256CBC-HS512","cty":"JWT"}"#,
        r#"{"alg":"RSA-OAEP-256","enc":"A128CBC-HS256","cty":"JWT"}"#,
        r#"{"alg":"RSA-OAEP-256","enc":"A256GCM","cty":"JWT"}"#,
        r#"{"alg":"RSA-OAEP-256","cty":"JWT"}"#,
        r#"{"enc":"A256CBC-HS512","cty":"JWT"}"#,
        r#"{"alg":"RSA-OAEP-256","enc":"A256CBC-HS512"}"#,
        r#"{"alg":"RSA-OAEP-256","enc":"A256CBC-HS512","cty":"JWE"}"#,
        r#"{"alg":"RSA-OAEP-256","enc":"A256CBC-HS512","cty":"JWT","zip":"DEF"}"#,
        r#"{"alg":"RSA-OAEP-256","enc":"A256CBC-HS512","cty":"JWT","zip":null}"#,
        r#"{"alg":"RSA-OAEP-256","enc":"A256CBC-HS512","cty":"JWT","crit":["exp"]}"#,
        r#"{"alg":"none","alg":"RSA-OAEP-256","enc":"A256CBC-HS512","cty":"JWT"}"#,
        r#"["RSA-OAEP-256","A256CBC-HS512","JWT"]"#,
        r#"{"alg":["RSA-OAEP-256"],"enc":"A256CBC-HS512","cty":"JWT"}"#,
        "{}",
        "",
    ] {
        assert_eq!(read_under(header), Err(Refused), "{header}");
    }
}

#[test]
fn texts_by_one_content_key_differ_and_are_opened_with_it_and_without() {
    let drawn = ContentKey::draw(&RECIPIENT.sealing).unwrap();
    let texts = [b"heat", b"heat"].map(|content| seal_by(content, &drawn));
    assert_ne!(texts[0], texts[1], "the initialization vector is fresh");
    let (content, key) = open_by(&texts[0], &RECIPIENT.opening, |_| None).unwrap();
    assert_eq!((content.as_slice(), key.wrapped()), (&b"heat"[..], drawn.wrapped()));
    let mut asked = None;
    let known = |wrapped: &str| {
        asked = Some(wrapped.to_owned());
        Some(key.clone())
    };
    // Without the recipient's own key: it is the known one that opens.
    let (again, _) = open_by(&texts[1], &SENDER.opening, known).unwrap();
    assert_eq!((again.as_slice(), asked.as_deref()), (&b"heat"[..], Some(drawn.wrapped())));
    let other = seal(b"heat", &RECIPIENT.sealing).unwrap();
    assert_eq!(open_by(&other, &RECIPIENT.opening, |_| Some(key.clone())).err(), Some(Refused), "a key that is not the text's");
}

#[test]
fn other_signatures_inside_are_refused() {
    let payload = claims().to_string();
    let read_signed = |signed: &str| read(&seal(signed.as_bytes(), &RECIPIENT.sealing).unwrap());
    let signed_under = |header: &str| sign_under(header, payload.as_bytes(), &SENDER.signing).unwrap();
    assert_eq!(read_signed(&signed_under(r#"{"typ":"JWT","alg":"RS512"}"#)), Ok(claims()), "other members do not matter");
    for header in [
        r#"{"alg":"none"}"#,
        r#"{"alg":"RS256"}"#,
        r#"{"alg":"PS512"}"#,
        r#"{"alg":"HS512"}"#,
        r#"{"alg":"rs512"}"#,
        r#"{"alg":"RS512","crit":["b64"],"b64":false}"#,
        r#"{"alg":"RS512","alg":"RS512"}"#,
        r#"{"typ":"JWT"}"#,
        r#"["RS512"]"#,
    ] {
        assert_eq!(read_signed(&signed_under(header)), Err(Refused), "{header}");
    }

    let [none, body] = [r#"{"alg":"none"}"#, &payload].map(|part| base64::encode_url_safe(part.as_bytes()));
    // The public key, which everybody has, as the key of a MAC.
    let to_mac = format!("{}.{body}", base64::encode_url_safe(br#"{"alg":"HS512"}"#));
    let mac_key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA512, &SENDER.public_key_info);
    let mac = base64::encode_url_safe(aws_lc_rs::hmac::sign(&mac_key, to_mac.as_bytes()).as_ref());
    let good = signed_under(r#"{"alg":"RS512"}"#);
    let unsigned = good.rsplit_once('.').unwrap().0;
    for signed in [
        payload.clone(),
        format!("{none}.{body}."),
        format!("{none}.{body}"),
        format!("{to_mac}.{mac}"),
        format!("{unsigned}."),
        unsigned.to_owned(),
        format!("{unsigned}.{}", base64::encode_url_safe(&[0; 256])),
        format!("{good}.{good}"),
    ] {
        assert_eq!(read_signed(&signed), Err(Refused), "{signed}");
    }
}

#[test]
fn claims_that_are_no_object_are_refused() {
    for payload in ["", "[]", "null", "7", "\"text\"", "{", r#"{"a":1}{"#, "\u{0}"] {
        let signed = sign(payload.as_bytes(), &SENDER.signing).unwrap();
        assert_eq!(read(&seal(signed.as_bytes(), &RECIPIENT.sealing).unwrap()), Err(Refused), "{payload}");
    }
}

#[test]
fn only_rsa_keys_are_taken() {
    let curve = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let curve = PrivateKey::from_pkcs8(&curve.serialize_der()).unwrap();
    assert_eq!(SigningKey::new(&curve).err(), Some(UnusableKey));
    assert_eq!(OpeningKey::new(&curve).err(), Some(UnusableKey));
    assert_eq!(SealingKey::new(&curve.public_key_info()).err(), Some(UnusableKey));
    assert_eq!(VerifyingKey::new(&curve.public_key_info()).err(), Some(UnusableKey));
    for text in ["", "key", "AAAA", &base64::encode(&RECIPIENT.public_key_info[1..])] {
        assert_eq!(SealingKey::from_authentication_info(text).err(), Some(UnusableKey), "{text}");
        assert_eq!(VerifyingKey::from_authentication_info(text).err(), Some(UnusableKey), "{text}");
    }
    assert!(SealingKey::from_authentication_info(&base64::encode(&RECIPIENT.public_key_info)).is_ok());
}

proptest! {
    #[test]
    fn any_text_is_refused_without_a_panic(text in "\\PC{0,200}|([A-Za-z0-9_-]{0,40}\\.){0,6}[A-Za-z0-9_-]{0,40}") {
        prop_assert_eq!(read(&text), Err(Refused));
    }

    #[test]
    fn any_parts_behind_the_right_header_are_refused(
        key in prop_oneof![Just(256_usize), 0..300_usize], iv in prop_oneof![Just(16_usize), 0..20_usize],
        ciphertext in proptest::collection::vec(any::<u8>(), 0..80), tag in prop_oneof![Just(32_usize), 0..40_usize], byte in any::<u8>(),
    ) {
        let header = base64::encode_url_safe(br#"{"alg":"RSA-OAEP-256","enc":"A256CBC-HS512","cty":"JWT"}"#);
        let parts = [vec![byte; key], vec![byte; iv], ciphertext, vec![byte; tag]].map(|part| base64::encode_url_safe(&part));
        prop_assert_eq!(read(&format!("{header}.{}", parts.join("."))), Err(Refused));
    }

    #[test]
    fn any_bytes_that_are_sealed_but_not_signed_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(read(&seal(&bytes, &RECIPIENT.sealing).unwrap()), Err(Refused));
    }

    #[test]
    fn any_claims_come_back(texts in proptest::collection::btree_map("\\PC{0,20}", "\\PC{0,60}", 0..8)) {
        let message = seal_claims(&texts, &SENDER.signing, &RECIPIENT.sealing).unwrap();
        prop_assert_eq!(open_claims(&message, &RECIPIENT.opening, &SENDER.verifying, BYTES_MAX), Ok(texts));
    }
}
