//! The NATS client protocol (docs.nats.io, "Client Protocol") as bytes: what a server sends is read, what a client sends is written.

mod base64;
mod decoder;
mod encoder;
mod headers;
mod info;
mod subject;
mod words;

pub(crate) use self::words::read_words;
pub use self::{
    base64::{Base64Error, decode as decode_base64},
    decoder::{CONTROL_LINE_BYTES_MAX, Decoder, INFO_BYTES_MAX, Limits, Message, Operation, PAYLOAD_BYTES_CAP, ProtocolError},
    encoder::{connect, ping, pong, publish, subscribe},
    headers::{HEADER_BYTES_MAX, HEADERS_MAX, Headers, HeadersError, Status},
    info::{Connect, Credentials, Info, InfoError, Signer},
    subject::{SUBJECT_BYTES_MAX, Subject, SubjectError, is_token, takes, token_of},
    words::words,
};
