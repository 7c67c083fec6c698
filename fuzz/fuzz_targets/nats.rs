#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bodkin_fuzz::nats(bytes));
