//! The body of a kernel as the macro generates it: a tree in a `static`. Numbers of types are those of the witnesses,
//! numbers of constants those of [`PrintedProgram::constants`](super::Program::constants). Names are those of Rust: of variables as
//! `print/name.rs` takes them. An optional part is a slice.

/// The number of a witness.
type Type = usize;

#[derive(Debug, Clone, Copy)]
pub enum E {
    /// A variable.
    Var(&'static str),
    /// A number or a truth value of C++.
    Text(&'static str),
    /// A number, without its suffix.
    Literal(&'static str, Type),
    /// A number, without its suffix, and its type in C++.
    Suffixed(&'static str, &'static str),
    Constant(usize),
    /// An operator on two numbers; the type is that of the result.
    Arithmetic(&'static str, Type, &'static E, &'static E),
    /// A comparison, `&&` or `||`.
    Compare(&'static str, &'static E, &'static E),
    /// `-x`.
    Negate(Type, &'static E),
    /// `!x`.
    Not(Type, &'static E),
    /// `x as T`: from which type, to which.
    Cast(Type, Type, &'static E),
    /// An id or a size: 32 bits in the prelude, `usize` here.
    Id(&'static str, &'static [E]),
    /// Calls a function.
    Call(&'static str, &'static [E]),
    /// `x[i]`, `x[[i, j]]`; the type is that of `x`.
    Index(&'static E, Type, &'static [E]),
    /// An index that is a variable, and its type: a number, or an array of them.
    Position(&'static E, Type),
    /// The index of the work-item's own element, and its type.
    Own(Type),
    /// The length of an array along an axis.
    Extent(&'static E, &'static E),
    /// A value of this type with the same bits.
    Bits(Type, &'static E),
    /// A field of a record, or of a tuple.
    Field(&'static E, &'static str),
    /// `c ? x : y`.
    Conditional(&'static E, &'static E, &'static E),
    /// Calls a function that is written in Rust: its number among those of `PrintedProgram::functions`.
    Invoke(usize, &'static [E]),
    /// A record of these fields; the others are those of a value.
    Record(Type, &'static [(&'static str, E)], &'static [E]),
    /// A function of these names and types, for an operation of a wave or an atomic one.
    Lambda(&'static [(&'static str, Type)], &'static E),
    /// A tuple or an array of these values.
    List(Type, &'static [E]),
    /// An array of one value.
    Filled(Type, &'static E),
}

#[derive(Debug, Clone, Copy)]
pub enum S {
    /// The line of the Rust file that the next statement stands on.
    Line(usize),
    /// Declares a variable: name, type, whether it is assigned to, value.
    Let(&'static str, Type, bool, &'static [E]),
    /// Declares a local array of zeros.
    Zeros(&'static str, Type),
    /// Declares a shared array: name, type of its elements, extents.
    Shared(&'static str, Type, &'static [E]),
    /// Declares the dynamic shared memory of the launch.
    DynamicShared(&'static str, Type),
    /// The variable may be left unused.
    Unused(&'static str),
    /// `place = value`.
    Assign(&'static E, &'static E),
    /// `place op= value`; the type is that of the place.
    AssignWith(&'static str, Type, &'static E, &'static E),
    /// An expression for its effect.
    Do(&'static E),
    /// `if`, with the `else` branch.
    If(&'static E, &'static [S], &'static [S]),
    /// A loop without an end of its own.
    Loop(&'static [S]),
    While(&'static E, &'static [S]),
    /// `for name in a..b`, with a step other than 1 if there is one.
    For(&'static str, Type, [&'static E; 2], &'static [E], &'static [S]),
    /// `for` over any other range: `inclusive` and `reversed`, with a step.
    Steps(&'static str, Type, [&'static E; 2], [bool; 2], &'static E, &'static [S]),
    Block(&'static [S]),
    Break,
    Continue,
    Return,
    /// `return value`.
    Give(&'static E),
    /// Jumps to a label.
    Goto(&'static str),
    /// A place to jump to.
    Label(&'static str),
}
