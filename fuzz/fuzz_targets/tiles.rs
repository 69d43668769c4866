#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| kr_blit::fuzzing::tiles(data));
