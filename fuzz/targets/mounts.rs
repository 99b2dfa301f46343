//! See `doors::mounts`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oribi_fuzz::doors::mounts(data));
