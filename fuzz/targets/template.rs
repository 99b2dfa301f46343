//! See `texts::template`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oribi_fuzz::texts::template(data));
