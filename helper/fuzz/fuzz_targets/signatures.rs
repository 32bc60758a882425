#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    gloveport_fuzz::subjects::signatures(input);
});
