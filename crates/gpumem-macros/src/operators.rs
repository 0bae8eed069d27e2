//! Operators that also assign.

use syn::{BinOp, Token, spanned::Spanned};

/// The operator of `a op= b`, with its text and its form in `a op b`.
pub(crate) fn plain_operator(op: &BinOp) -> Option<(&'static str, BinOp)> {
    macro_rules! operators {
        ($($assign:ident $plain:ident $token:tt)*) => {
            match op {
                $(BinOp::$assign(token) => Some((stringify!($token), BinOp::$plain(Token![$token](token.span())))),)*
                _ => None,
            }
        };
    }
    operators! {
        AddAssign Add + SubAssign Sub - MulAssign Mul * DivAssign Div / RemAssign Rem % BitAndAssign BitAnd &
        BitOrAssign BitOr | BitXorAssign BitXor ^ ShlAssign Shl << ShrAssign Shr >>
    }
}
