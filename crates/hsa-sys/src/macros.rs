//! The three shapes everything in this crate is declared with.
//!
//! - [`handles!`]: opaque 64-bit handles.
//! - [`c_enum!`]: a C enumeration as a newtype with associated constants.
//! - [`layout!`]: size, alignment and offsets of a structure, checked when the crate is built.
//!
//! The latter two and [`bit_fields!`] also write down what they declare in tables (see `reflect`), so that a test
//! can compare every number with the C headers. Functions have a macro of their own in `function`.

/// Declares opaque handles: eight bytes, zero meaning "none".
macro_rules! handles {
    ($( $(#[$doc:meta])* $name:ident $(: $generation:ident)?; )+) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub struct $name {
                /// The value the runtime gave; zero is no object.
                pub handle: u64,
            }
        )+
    };
}

/// Declares a C enumeration as a transparent integer with associated constants.
///
/// Values come in groups. A group says when its names appeared (`BASE`: they are in the headers of
/// ROCr 5.2; `LATER`: newer) and which prefix the C names have; a value whose C name is not prefix
/// plus Rust name states it.
macro_rules! c_enum {
    (
        $(#[$doc:meta])*
        $name:ident: $repr:ty;
        $(
            $generation:ident $prefix:literal {
                $( $(#[$vdoc:meta])* $value:ident = $number:expr $(, $cname:literal)?; )+
            }
        )+
    ) => {
        $(#[$doc])*
        ///
        /// Any number is a valid value of this type: runtimes return values that are newer than
        /// this crate.
        #[repr(transparent)]
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $repr);

        impl $name {
            $($(
                $(#[$vdoc])*
                #[doc = concat!("\n\nC: `", c_enum!(@cname $prefix $value $($cname)?), "`.")]
                pub const $value: Self = Self($number);
            )+)+

            #[doc(hidden)]
            pub const CONSTANTS: &'static [$crate::reflect::Constant] = &[
                $($($crate::reflect::Constant {
                    c_name: c_enum!(@cname $prefix $value $($cname)?),
                    value: Self::$value.0 as i128,
                    generation: $crate::reflect::Generation::$generation,
                },)+)+
            ];

            /// The C name of this value, where it is known; of several names, the first.
            pub fn name(self) -> Option<&'static str> {
                let known = |constant: &&$crate::reflect::Constant| constant.value == self.0 as i128;
                Self::CONSTANTS.iter().find(known).map(|constant| constant.c_name)
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($name), "({:#x})"), self.0),
                }
            }
        }
    };
    (@cname $prefix:literal $value:ident) => { concat!($prefix, stringify!($value)) };
    (@cname $prefix:literal $value:ident $cname:literal) => { $cname };
}

/// Declares bit fields of an integer, as the C headers do with `_SHIFT` and `_WIDTH` names.
macro_rules! bit_fields {
    (
        $(#[$doc:meta])*
        $name:ident;
        $prefix:literal {
            $( $(#[$vdoc:meta])* $value:ident = $shift:literal, $width:literal; )+
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl $name {
            $(
                $(#[$vdoc])*
                #[doc = concat!("\n\nC: `", $prefix, stringify!($value), "`.")]
                pub const $value: $crate::BitField = $crate::BitField { shift: $shift, width: $width };
            )+

            #[doc(hidden)]
            pub const CONSTANTS: &'static [$crate::reflect::Constant] = &[$(
                $crate::reflect::Constant {
                    c_name: concat!($prefix, stringify!($value), "_SHIFT"),
                    value: $shift,
                    generation: $crate::reflect::Generation::BASE,
                },
                $crate::reflect::Constant {
                    c_name: concat!($prefix, stringify!($value), "_WIDTH"),
                    value: $width,
                    generation: $crate::reflect::Generation::BASE,
                },
            )+];
        }
    };
}

/// Asserts size, alignment and every offset of structures, at compile time, and names them in a
/// table.
///
/// A field that is missing from the list does not compile. `field as "name"` gives the C name where
/// C has no such field, because its union has no name: then it is one member of that union.
macro_rules! layout {
    (
        $table:ident;
        $(
            $generation:ident $name:ident: $size:literal, $align:literal
            { $( $field:ident $(as $cfield:literal)?: $offset:literal ),+ $(,)? }
        )+
    ) => {
        $(const _: () = {
            assert!(size_of::<$name>() == $size, concat!("size of ", stringify!($name)));
            assert!(align_of::<$name>() == $align, concat!("alignment of ", stringify!($name)));
            $(assert!(
                core::mem::offset_of!($name, $field) == $offset,
                concat!("offset of ", stringify!($name), ".", stringify!($field)),
            );)+
            fn _every_field_is_listed(value: $name) {
                let $name { $($field: _),+ } = value;
            }
        };)+

        pub(crate) const $table: &[$crate::reflect::Layout] = &[$(
            $crate::reflect::Layout {
                c_name: stringify!($name),
                size: $size,
                align: $align,
                generation: $crate::reflect::Generation::$generation,
                fields: &[$($crate::reflect::Field {
                    c_name: layout!(@cname $field $($cfield)?),
                    offset: $offset,
                    size: $crate::reflect::size_of_field(|value: &$name| &value.$field),
                }),+],
            },
        )+];
    };
    (@cname $field:ident) => { stringify!($field) };
    (@cname $field:ident $cfield:literal) => { $cfield };
}

/// Makes a module's table of enumerations and groups of bit fields.
macro_rules! enumerations {
    ($($name:ident),+ $(,)?) => {
        pub(crate) const ENUMERATIONS: &[$crate::reflect::Enumeration] = &[$(
            $crate::reflect::Enumeration {
                name: stringify!($name),
                constants: $name::CONSTANTS,
            },
        )+];
    };
}
