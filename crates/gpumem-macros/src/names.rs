//! Names in C++: one for each variable of the function, shadowed or not, and none that C++ or the prelude has.

use std::collections::{HashMap, HashSet};

/// Words of C++, of its GPU dialects, and of what kernels print.
const TAKEN: &str = " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class \
    compl concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default \
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable \
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast \
    requires return short signed sizeof static static_assert static_cast struct switch template this thread_local throw \
    true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq \
    linux unix i386 near far assert NULL NAN INFINITY HUGE_VAL signbit main \
    threadIdx blockIdx blockDim gridDim warpSize \
    u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 boolean complex array slice view constant constant_array gpumem rust detail \
    local_id group_id group_size groups global_id global_size local_linear group_linear barrier wavebarrier memory_fence \
    barrier_scope LOCAL GLOBAL BOTH wave_size wave_id lane wave_items shuffle shuffle_up shuffle_down shuffle_xor \
    wave_ballot wave_any wave_all wave_reduce wave_sum wave_min wave_max wave_scan atomic_update atomic_add atomic_min \
    atomic_max atomic_exchange atomic_compare_exchange dynamic_shared_bytes functions records gpumem_dynamic_shared gpumem_constant_memory ";

/// The names of one kernel.
#[derive(Default)]
pub(crate) struct Names {
    used: HashSet<String>,
    scopes: Vec<HashMap<String, Variable>>,
}

/// A variable of the function.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    /// Its name in C++.
    pub name: String,
    pub kind: VariableKind,
    /// The number of its witness.
    pub ty: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableKind {
    /// A parameter that is an array: a reference in the closure.
    ArrayParameter,
    /// A shared array: written through `&`.
    Shared,
    /// A value that does not change.
    Fixed,
    /// A value that may be assigned to.
    Mutable,
    /// Declared without a value.
    Later,
    /// A parameter whose type has a name of the user's: an array by reference, or a value.
    Unknown,
}

/// A name that C++ takes.
pub(crate) fn allowed(name: &str) -> String {
    let name = name.trim_start_matches("r#");
    let mut text: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' { c.to_string() } else { format!("u{:x}", u32::from(c)) }
        })
        .collect();
    if text.starts_with("__")
        || text.starts_with('_') && text.chars().nth(1).is_some_and(|c| c.is_ascii_uppercase())
    {
        // Such names are the compiler's.
        text = format!("v{text}");
    }
    let is_macro = text.starts_with("GPUMEM_") || text.starts_with("HIP_") || text.starts_with("CUDA");
    if is_macro || TAKEN.contains(&format!(" {text} ")) {
        text.push('_');
    }
    // Two underscores are the compiler's, wherever they stand.
    text.replace("__", "_u_")
}

/// Whether a text is one identifier of C++.
pub(crate) fn is_identifier(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_letter) && text.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

impl Names {
    pub(crate) fn enter(&mut self) {
        self.scopes.push(HashMap::new());
    }

    pub(crate) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// A name like this one that nothing has yet.
    pub(crate) fn fresh(&mut self, like: &str) -> String {
        let base = allowed(like);
        let mut name = base.clone();
        let mut count = 1;
        while !self.used.insert(name.clone()) {
            name = format!("{base}_{count}");
            count += 1;
        }
        name
    }

    /// Declares a variable. Gives its name in C++.
    pub(crate) fn declare(&mut self, rust: &str, kind: VariableKind, ty: usize) -> String {
        let name = self.fresh(rust);
        self.bind(rust, Variable { name: name.clone(), kind, ty });
        name
    }

    /// Binds a name to an existing variable.
    pub(crate) fn bind(&mut self, rust: &str, variable: Variable) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(rust.to_owned(), variable);
        }
    }

    pub(crate) fn find(&self, rust: &str) -> Option<&Variable> {
        self.scopes.iter().rev().find_map(|scope| scope.get(rust))
    }
}

/// The name of a field in C++.
pub(crate) fn member_name(member: &syn::Member) -> String {
    match member {
        syn::Member::Named(name) => allowed(&name.to_string()),
        syn::Member::Unnamed(index) => format!("f{}", index.index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_has_a_unique_name_that_is_no_keyword_of_cpp() {
        let mut names = Names::default();
        names.enter();
        let declare = |names: &mut Names, name| names.declare(name, VariableKind::Fixed, 0);
        assert_eq!(declare(&mut names, "total"), "total");
        names.enter();
        assert_eq!(declare(&mut names, "total"), "total_1");
        assert_eq!(names.find("total").unwrap().name, "total_1");
        names.leave();
        assert_eq!(names.find("total").unwrap().name, "total");
        assert_eq!(declare(&mut names, "total_1"), "total_1_1");
        assert_eq!(declare(&mut names, "float"), "float_");
        assert_eq!(declare(&mut names, "r#struct"), "struct_");
        assert_eq!(declare(&mut names, "lane"), "lane_");
        assert_eq!(declare(&mut names, "__x"), "v_u_x");
        assert_eq!(declare(&mut names, "_X"), "v_X");
        assert_eq!(declare(&mut names, "größe"), "gruf6udfe");
    }
}
