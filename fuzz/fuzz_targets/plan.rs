#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| kr_plan::fuzzing::windows(data));
