//! See `doors::path`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oribi_fuzz::doors::path(data));
