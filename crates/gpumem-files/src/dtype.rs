//! Types of elements, as safetensors names them.

use gpumem_runtime::{ElementKind, ElementType};
use std::fmt;

macro_rules! dtypes {
    ($($(#[$doc:meta])* $name:ident $text:literal $bits:literal $kind:ident;)*) => {
        /// The type of a tensor's elements, as a safetensors file names it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Dtype {
            $($(#[$doc])* $name,)*
        }

        impl Dtype {
            /// All types.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in the file.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }

            /// Bits of an element: fewer than eight for `F4` and `F6`.
            pub fn bits(self) -> usize {
                match self {
                    $(Self::$name => $bits,)*
                }
            }

            /// The element of an array of it. Floats of eight bits are bytes here; those of fewer bits have none.
            pub fn element(self) -> Option<ElementType> {
                let kind = match self {
                    $(Self::$name => ElementKind::$kind,)*
                };
                self.bits().is_multiple_of(8).then(|| ElementType::new(kind, self.bits() / 8))
            }
        }
    };
}

dtypes! {
    /// A truth value of one byte: [`Bool`](gpumem_runtime::Bool).
    Bool "BOOL" 8 Bool;
    /// A float of 4 bits, two in a byte: read as bytes.
    F4 "F4" 4 UInt;
    /// A float of 6 bits, two of them of the exponent, four in three bytes: read as bytes.
    F6E2M3 "F6_E2M3" 6 UInt;
    /// A float of 6 bits, three of them of the exponent, four in three bytes: read as bytes.
    F6E3M2 "F6_E3M2" 6 UInt;
    /// `u8`.
    U8 "U8" 8 UInt;
    /// `i8`.
    I8 "I8" 8 Int;
    /// A float of 8 bits, five of them of the exponent: read as `u8`.
    F8E5M2 "F8_E5M2" 8 UInt;
    /// A float of 8 bits, four of them of the exponent: read as `u8`.
    F8E4M3 "F8_E4M3" 8 UInt;
    /// A power of two in 8 bits: read as `u8`.
    F8E8M0 "F8_E8M0" 8 UInt;
    /// `F8_E4M3` without infinities and with one zero: read as `u8`.
    F8E4M3Fnuz "F8_E4M3FNUZ" 8 UInt;
    /// `F8_E5M2` without infinities and with one zero: read as `u8`.
    F8E5M2Fnuz "F8_E5M2FNUZ" 8 UInt;
    /// `i16`.
    I16 "I16" 16 Int;
    /// `u16`.
    U16 "U16" 16 UInt;
    /// `f16`.
    F16 "F16" 16 Float;
    /// `bf16`.
    BF16 "BF16" 16 BFloat;
    /// `i32`.
    I32 "I32" 32 Int;
    /// `u32`.
    U32 "U32" 32 UInt;
    /// `f32`.
    F32 "F32" 32 Float;
    /// `Complex<f32>`.
    C64 "C64" 64 Complex;
    /// `f64`.
    F64 "F64" 64 Float;
    /// `i64`.
    I64 "I64" 64 Int;
    /// `u64`.
    U64 "U64" 64 UInt;
}

impl Dtype {
    /// The type of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.name() == name)
    }

    /// The type that an element has in a file, where it has one.
    pub(crate) fn of_element(element: ElementType) -> Option<Self> {
        // In the list `u8` comes before the floats of eight bits.
        Self::ALL.iter().copied().find(|dtype| dtype.element() == Some(element))
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
