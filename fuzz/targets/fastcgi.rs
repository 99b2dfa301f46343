//! See `gateways::fastcgi`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oribi_fuzz::gateways::fastcgi(data));
