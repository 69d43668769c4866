//! The short examples, run: each asserts what it shows.

macro_rules! examples {
    ($($name:ident in $path:literal)+) => {
        $(
            #[path = $path]
            mod $name;

            #[test]
            fn $name() {
                $name::main().unwrap();
            }
        )+
    };
}

examples! {
    basic in "../examples/basic.rs"
    user_data in "../examples/user_data.rs"
    opt_out in "../examples/opt_out.rs"
    early_exit in "../examples/early_exit.rs"
    open_ended in "../examples/open_ended.rs"
    own_counters in "../examples/own_counters.rs"
}
