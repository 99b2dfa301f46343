//! See `doors::proxy`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oribi_fuzz::doors::proxy(data));
