#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| amdgpu_emu::fuzzing::object(data));
