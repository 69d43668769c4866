//! `kernels/kr_blit.h` says what `layout.rs` says.

#[test]
fn the_header_in_the_repository_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/kr_blit.h");
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    let made = kr_blit::layout::c_header();
    let line = kept.lines().zip(made.lines()).position(|(a, b)| a != b);
    assert!(
        kept == made,
        "{path} is out of date (first difference after line {}); make it anew with \
         `cargo run -p kr-blit --example header > kernels/kr_blit.h`",
        line.unwrap_or(kept.lines().count().min(made.lines().count()))
    );
}
