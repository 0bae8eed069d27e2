//! The parameters of a kernel: their form in device code, and how they come out of a launch.

use crate::simt::{
    Inside,
    checker::{Checker, MemoryReach},
};
use gpumem_core::KernelArguments;

/// The facts about a parameter that need no argument.
#[derive(Debug, Clone)]
pub struct ParameterInfo {
    /// Bytes in device code.
    pub size: usize,
    /// Alignment in device code.
    pub align: usize,
    /// The type in the words of the portable prelude; `None` for types that only the user's source knows.
    pub device_type: Option<String>,
    /// Whether it is an array in global memory, whose address is its first eight bytes.
    pub is_memory: bool,
    /// Whether it lies in the module's constant memory.
    pub is_constant: bool,
    /// The memory of an argument, by its bytes.
    pub reach: fn(&[u8]) -> Option<MemoryReach>,
}

/// A parameter of a kernel. The body on the processor gets its values.
///
/// # Safety
/// `SIZE` and `ALIGN` are those of the type in device code, and `bind` takes exactly arguments of `SIZE` bytes.
pub unsafe trait Parameter: Sized + Send + Sync + 'static {
    /// Bytes in device code.
    const SIZE: usize;
    /// Alignment in device code.
    const ALIGN: usize;
    /// Whether it is an array in global memory.
    const IS_MEMORY: bool = false;

    /// Whether it lies in the module's constant memory.
    const IS_CONSTANT: bool = false;

    /// The axes of a launch along which there may be more than one work-item: fewer than all if each work-item has an element of
    /// its own.
    const OWN_AXES: usize = 3;

    /// The type in the words of the portable prelude.
    fn device_type() -> Option<String>;

    /// The memory of an argument, by its bytes.
    fn reach(argument: &[u8]) -> Option<MemoryReach> {
        let _ = argument;
        None
    }

    /// Leaves out the work-items for which [`assume`](Self::assume) does not hold.
    #[doc(hidden)]
    fn narrow(&self, inside: &mut Inside) {
        let _ = inside;
    }

    /// Tells the compiler which conditions an ordinary launch guarantees for a work-item with these global ids.
    ///
    /// # Safety
    /// There is no check mode, and the work-item is one that [`narrow`](Self::narrow) leaves.
    #[doc(hidden)]
    #[inline(always)]
    unsafe fn assume(&self, ids: [usize; 3]) {
        let _ = ids;
    }

    /// The value for a body from the bytes of an argument, or `None` where they are more or fewer.
    ///
    /// # Safety
    /// The memory that the argument names is valid while the value lives, holds initialised elements, and is not used
    /// by anything else, apart from reads of memory that is only read.
    #[doc(hidden)]
    unsafe fn bind(argument: &[u8], checker: Option<&Checker>) -> Option<Self>;
}

/// The least of the numbers of axes; those of a launch without any.
const fn fewest(mut axes: &[usize]) -> usize {
    let mut least = 3;
    while let [first, rest @ ..] = axes {
        if *first < least {
            least = *first;
        }
        axes = rest;
    }
    least
}

mod sealed {
    pub trait SealedParameter {}
}

/// The parameters of a kernel in order: a tuple of up to twelve.
pub trait Parameters: sealed::SealedParameter + Sized + Send + Sync + 'static {
    /// How many there are.
    const COUNT: usize;

    /// The fewest of [`Parameter::OWN_AXES`].
    const OWN_AXES: usize;

    /// The facts about each.
    fn list() -> Vec<ParameterInfo>;

    /// As [`Parameter::narrow`], by each.
    #[doc(hidden)]
    fn narrow(&self, inside: &mut Inside);

    /// As [`Parameter::assume`], for each.
    ///
    /// # Safety
    /// As there.
    #[doc(hidden)]
    unsafe fn assume(&self, ids: [usize; 3]);

    /// The values for a body.
    ///
    /// # Safety
    /// As for [`Parameter::bind`].
    #[doc(hidden)]
    unsafe fn bind(arguments: &KernelArguments, checker: Option<&Checker>) -> Option<Self>;
}

macro_rules! tuples {
    ($(($count:literal: $($name:ident)*))*) => {$(
        impl<$($name: Parameter),*> sealed::SealedParameter for ($($name,)*) {}
        impl<$($name: Parameter),*> Parameters for ($($name,)*) {
            const COUNT: usize = $count;
            const OWN_AXES: usize = fewest(&[$($name::OWN_AXES),*]);

            fn list() -> Vec<ParameterInfo> {
                vec![$(ParameterInfo {
                    size: $name::SIZE,
                    align: $name::ALIGN,
                    device_type: $name::device_type(),
                    is_memory: $name::IS_MEMORY,
                    is_constant: $name::IS_CONSTANT,
                    reach: $name::reach,
                }),*]
            }

            #[allow(non_snake_case, unused_variables)]
            fn narrow(&self, inside: &mut Inside) {
                let ($($name,)*) = self;
                $($name.narrow(inside);)*
            }

            #[allow(non_snake_case, unused_variables)]
            #[inline(always)]
            unsafe fn assume(&self, ids: [usize; 3]) {
                let ($($name,)*) = self;
                // SAFETY: the caller's promise, for each parameter.
                $(unsafe { $name.assume(ids) };)*
            }

            #[allow(unused_variables, unused_mut)]
            unsafe fn bind(arguments: &KernelArguments, checker: Option<&Checker>) -> Option<Self> {
                if arguments.len() != Self::COUNT {
                    return None;
                }
                if let Some(checker) = checker {
                    let reaches: [fn(&[u8]) -> Option<MemoryReach>; $count] = [$($name::reach),*];
                    for (at, (reach, argument)) in reaches.into_iter().zip(arguments.iter()).enumerate() {
                        checker.note_argument(at + 1, reach(argument));
                    }
                }
                let mut arguments = arguments.iter();
                // SAFETY: the caller's promise, for each argument.
                Some(($(unsafe { $name::bind(arguments.next()?, checker)? },)*))
            }
        }
    )*};
}
tuples! {
    (0: ) (1: A) (2: A B) (3: A B C) (4: A B C D) (5: A B C D E) (6: A B C D E F) (7: A B C D E F G)
    (8: A B C D E F G H) (9: A B C D E F G H I) (10: A B C D E F G H I J) (11: A B C D E F G H I J K)
    (12: A B C D E F G H I J K L)
}
