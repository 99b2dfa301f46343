//! See `doors::http`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oribi_fuzz::doors::http(data));
