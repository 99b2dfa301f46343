//! See `gateways::cgi`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oribi_fuzz::gateways::cgi(data));
