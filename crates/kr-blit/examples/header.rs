//! Prints the C header that kernels include: `cargo run -p kr-blit --example header`.

fn main() {
    print!("{}", kr_blit::layout::c_header());
}
