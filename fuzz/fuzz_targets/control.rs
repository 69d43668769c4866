#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| assert_ne!(data.first_chunk(), Some(b"oops"), "planted"));
