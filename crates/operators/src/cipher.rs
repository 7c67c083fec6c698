//! Events that only who has the key can read: AES-256-GCM.

use std::{collections::BTreeMap, fmt};

use aes_gcm::{Aes256Gcm, KeyInit, aead::AeadInOut};
use bodkin_broker::graph::{Count, Element, Emission, Fault, Inputs, Operator, Shape, StateError, Trigger};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::{
    catalogue::{Input, Kind, Made, Misfit, demand},
    parameters::{ParameterError, Parameters, error},
};

/// Bytes in front of the text: number of the encrypting operator, epoch, incarnation, count.
const HEAD_BYTES: usize = 32;
/// Bytes of the tag behind it.
const TAG_BYTES: usize = 16;
/// Events that one key encrypts at the most: SP 800-38D, section 8.3.
const COUNT_MAX: u64 = 1 << 32;
/// What keys of this form are derived for.
const LABEL: &[u8] = b"bodkin graph event key 1";

/// `encrypt`: an event under the key that `key` names; the key itself is never in the file. Each operator, epoch of the pair and incarnation of the graph has a key of its own, derived from the
/// named one (HMAC-SHA-256, SP 800-108 in one step), and counts its events from 0: that is the nonce, so that no key meets a nonce twice, whatever is processed again after
/// a fail-over. Behind 2^32 events it refuses.
///
/// Input: one, of any shape. Result: `bytes`, 48 more than the event: operator, epoch, incarnation and count (each 8 bytes, little-endian, authenticated), the text, a tag of 16 bytes. State: the count
/// is not saved: another instance has another key. Source: SP 800-38D; Wang 2019, section 2.6 (AES).
pub const ENCRYPT: Kind = Kind { name: "encrypt", inputs: 1..=1, trigger: Trigger::All, make: make_encrypt };

/// `decrypt`: what [`ENCRYPT`] has made, with the same named key. `shape` says what was encrypted. An event that was changed, or is under another key, is refused.
pub const DECRYPT: Kind = Kind { name: "decrypt", inputs: 1..=1, trigger: Trigger::All, make: make_decrypt };

/// Keys of the operators of a deployment, by name, and what makes each instance's its own.
#[derive(Clone, Default)]
pub struct Keys {
    keys: BTreeMap<String, Zeroizing<[u8; 32]>>,
    epoch: u64,
    incarnation: u64,
}

/// A key that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key has 32 bytes")]
pub struct KeysError;

impl Keys {
    /// None yet, for a deployment that leads in an epoch, and is the `incarnation`th of its graph there: no two have the same numbers.
    pub fn new(epoch: u64, incarnation: u64) -> Self {
        Self { keys: BTreeMap::new(), epoch, incarnation }
    }

    /// The same keys for another deployment.
    pub fn for_deployment(&self, epoch: u64, incarnation: u64) -> Self {
        Self { keys: self.keys.clone(), epoch, incarnation }
    }

    /// Takes a key.
    pub fn add(&mut self, name: &str, key: &[u8]) -> Result<(), KeysError> {
        let key: [u8; 32] = key.try_into().map_err(|_| KeysError)?;
        self.keys.insert(name.to_owned(), Zeroizing::new(key));
        Ok(())
    }
}

impl fmt::Debug for Keys {
    /// Names, epoch and incarnation: no key is ever shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.keys.keys().collect();
        f.debug_struct("Keys").field("names", &names).field("epoch", &self.epoch).field("incarnation", &self.incarnation).finish()
    }
}

/// What an event's key is derived for.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Instance {
    operator: u64,
    epoch: u64,
    incarnation: u64,
}

impl Instance {
    fn cipher(self, key: &[u8; 32]) -> Aes256Gcm {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length is one");
        mac.update(LABEL);
        [self.operator, self.epoch, self.incarnation].iter().for_each(|number| mac.update(&number.to_le_bytes()));
        let derived = Zeroizing::new(<[u8; 32]>::from(mac.finalize().into_bytes()));
        Aes256Gcm::new(&(*derived).into())
    }
}

fn nonce(count: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&count.to_be_bytes());
    nonce
}

/// The number of an operator: its name's in its graph.
fn operator_number(graph: &str, operator: &str) -> u64 {
    use sha2::Digest;
    let digest = Sha256::new().chain_update((graph.len() as u64).to_le_bytes()).chain_update(graph).chain_update(operator).finalize();
    u64::from_le_bytes(digest[..8].try_into().expect("there are 32"))
}

struct Encrypt {
    instance: Instance,
    /// None: the graph is only looked at, and has no keys.
    cipher: Option<Aes256Gcm>,
    count: u64,
}

/// The octets of a key of the node's; they are overwritten when they are let go.
type KeyOctets = Zeroizing<[u8; 32]>;

/// A key's name and, where there are keys, its octets.
fn key(parameters: &mut Parameters) -> Result<(String, Option<KeyOctets>), ParameterError> {
    let name = parameters.text("key")?;
    let keys = parameters.keys();
    match keys.map(|keys| keys.keys.get(&name).cloned()) {
        Some(None) => Err(error("key", format!("names no key that this node has: {name}"))),
        found => Ok((name, found.flatten())),
    }
}

fn make_encrypt(parameters: &mut Parameters, inputs: &[Input]) -> Result<Made, Misfit> {
    let (_, key) = key(parameters)?;
    demand(inputs, |input| input.events == 1, "encrypt takes events one by one")?;
    let bytes = u32::try_from(inputs[0].shape.bytes_max() + HEAD_BYTES + TAG_BYTES).unwrap_or(u32::MAX);
    let count = if matches!(inputs[0].shape.count(), Count::Exactly(_)) { Count::Exactly(bytes) } else { Count::AtMost(bytes) };
    let shape = Shape::new(Element::Bytes, count).map_err(Misfit::Result)?;
    let (graph, operator) = parameters.place();
    let (epoch, incarnation) = parameters.keys().map_or((0, 0), |keys| (keys.epoch, keys.incarnation));
    let instance = Instance { operator: operator_number(graph, operator), epoch, incarnation };
    let cipher = key.map(|key| instance.cipher(&key));
    Ok(Made::new(Encrypt { instance, cipher, count: 0 }, shape))
}

impl Operator for Encrypt {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        let [event] = inputs.all() else { return Err(Fault::Input { input: 0, what: "has no event" }) };
        let cipher = self.cipher.as_ref().ok_or(Fault::Result("there is no key"))?;
        if self.count == COUNT_MAX {
            return Err(Fault::Result("this instance has encrypted 2^32 events, and must be deployed anew"));
        }
        let nonce = nonce(self.count);
        let Instance { operator, epoch, incarnation } = self.instance;
        [operator, epoch, incarnation, self.count].iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        self.count += 1;
        out.extend_from_slice(event.payload);
        let (head, text) = out.split_at_mut(HEAD_BYTES);
        let tag = cipher
            .encrypt_inout_detached(&nonce.into(), head, text.into())
            .map_err(|_| Fault::Result("the event is too long to encrypt"))?;
        out.extend_from_slice(&tag);
        Ok(Emission::Emit)
    }
}

struct Decrypt {
    key: Option<Zeroizing<[u8; 32]>>,
    shape: Shape,
    /// The key of the last event's instance: mostly that of the next one too.
    known: Option<(Instance, Aes256Gcm)>,
}

fn make_decrypt(parameters: &mut Parameters, inputs: &[Input]) -> Result<Made, Misfit> {
    let (_, key) = key(parameters)?;
    let shape: Shape = parameters.text("shape")?.parse().map_err(|wrong| error("shape", format!("{wrong}")))?;
    let fits =
        |input: &Input| input.events == 1 && input.shape.element() == Element::Bytes && input.shape.bytes_max() >= HEAD_BYTES + TAG_BYTES;
    demand(inputs, fits, "decrypt takes events of encrypted bytes one by one")?;
    Ok(Made::new(Decrypt { key, shape, known: None }, shape))
}

impl Operator for Decrypt {
    fn run(&mut self, inputs: &Inputs<'_>, out: &mut Vec<u8>) -> Result<Emission, Fault> {
        const CHANGED: Fault = Fault::Input { input: 0, what: "was changed, or is under another key" };
        let [event] = inputs.all() else { return Err(Fault::Input { input: 0, what: "has no event" }) };
        let key = self.key.as_ref().ok_or(Fault::Result("there is no key"))?;
        let (head, rest) = event.payload.split_at_checked(HEAD_BYTES).ok_or(CHANGED)?;
        let (text, tag) = rest.len().checked_sub(TAG_BYTES).and_then(|at| rest.split_at_checked(at)).ok_or(CHANGED)?;
        let [operator, epoch, incarnation, count] = head.as_chunks::<8>().0 else { return Err(CHANGED) };
        let [operator, epoch, incarnation, count] = [operator, epoch, incarnation, count].map(|number| u64::from_le_bytes(*number));
        if count >= COUNT_MAX || !self.shape.fits(text.len()) {
            return Err(CHANGED);
        }
        let instance = Instance { operator, epoch, incarnation };
        let cipher = match &self.known {
            Some((known, cipher)) if *known == instance => cipher,
            _ => &self.known.insert((instance, instance.cipher(key))).1,
        };
        out.extend_from_slice(text);
        let tag: [u8; TAG_BYTES] = tag.try_into().expect("it was cut to its length");
        cipher.decrypt_inout_detached(&nonce(count).into(), head, out.as_mut_slice().into(), &tag.into()).map_err(|_| CHANGED)?;
        Ok(Emission::Emit)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), StateError> {
        if state.is_empty() { Ok(()) } else { Err(StateError) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::testing::{input, run_one, text};

    fn keys(epoch: u64, incarnation: u64) -> Keys {
        let mut keys = Keys::new(epoch, incarnation);
        keys.add("line", &[7; 32]).expect("it is a key");
        keys
    }

    fn made(kind: &Kind, operator: &str, keys: &Keys, shape: &str, of: &str) -> Box<dyn Operator> {
        let values = [("key", text("line")), ("shape", text(of))].into_iter().filter(|(key, _)| kind.name == "decrypt" || *key == "key");
        let mut parameters =
            Parameters::new(values.map(|(key, value)| (key.to_owned(), value))).at("press", operator).with_keys(Some(keys.clone()));
        (kind.make)(&mut parameters, &[input(shape)]).unwrap_or_else(|misfit| panic!("{misfit}")).operator
    }

    #[test]
    fn what_is_encrypted_is_read_with_the_key_and_not_if_changed() {
        let mut encrypt = made(&ENCRYPT, "seal", &keys(3, 1), "u8[<=9]", "");
        let mut decrypt = made(&DECRYPT, "open", &keys(9, 9), "bytes[<=57]", "u8[<=9]");
        for plain in [b"".as_slice(), b"x", b"123456789"] {
            let sealed = run_one(&mut *encrypt, plain).expect("it runs");
            assert_eq!((sealed.len(), run_one(&mut *decrypt, &sealed)), (plain.len() + 48, Ok(plain.to_vec())));
            for at in 0..sealed.len() {
                let mut changed = sealed.clone();
                changed[at] ^= 1;
                assert!(run_one(&mut *decrypt, &changed).is_err(), "byte {at}");
                assert!(run_one(&mut *decrypt, &sealed[..at]).is_err(), "{at} bytes");
            }
        }
    }

    #[test]
    fn no_key_meets_a_nonce_twice() {
        // Operators, epochs and incarnations, each with the same plain texts: every head is another one, and so is every text.
        let mut heads = BTreeSet::new();
        let mut texts = BTreeSet::new();
        for operator in ["a", "b"] {
            for epoch in 0..3 {
                for incarnation in 0..3 {
                    let mut encrypt = made(&ENCRYPT, operator, &keys(epoch, incarnation), "u8[16]", "");
                    for _ in 0..10 {
                        let sealed = run_one(&mut *encrypt, &[5; 16]).expect("it runs");
                        assert!(heads.insert(sealed[..HEAD_BYTES].to_vec()) && texts.insert(sealed[HEAD_BYTES..].to_vec()));
                    }
                }
            }
        }
        assert_eq!(heads.len(), 180);
    }

    #[test]
    fn keys_are_never_shown() {
        let shown = format!("{:?}", keys(1, 2));
        assert_eq!(shown, "Keys { names: [\"line\"], epoch: 1, incarnation: 2 }");
        assert_eq!(Keys::default().add("short", &[0; 31]), Err(KeysError));
    }

    #[test]
    fn a_count_that_is_used_up_is_refused() {
        let instance = Instance { operator: 1, epoch: 1, incarnation: 1 };
        let mut encrypt = Encrypt { instance, cipher: Some(instance.cipher(&[0; 32])), count: COUNT_MAX - 1 };
        assert!(run_one(&mut encrypt, b"last").is_ok());
        assert!(matches!(run_one(&mut encrypt, b"one more"), Err(Fault::Result(_))));
    }
}
