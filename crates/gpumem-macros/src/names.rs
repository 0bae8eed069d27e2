//! Names: which variable of the function each stands for, and what it is called in the tree, where none is hidden.
//!
//! rustc tells names apart by their letters and by the macro that wrote them, and a procedural macro cannot ask it. So what is
//! found here is a guess, of which rustc asks for proof: [`Names::proof`] is the blocks, declarations and uses of the function
//! alone, with the user's own tokens. Each declaration there has a number for its type, and each use takes the number that was
//! found here.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap, HashSet},
};
use syn::{
    Block, Lifetime, Macro,
    ext::IdentExt,
    visit::{self, Visit},
};

/// Words that are no names in some edition: with these alone, `r#` is needed, and says nothing else.
const WORDS: &str = " as break const continue crate else enum extern false fn for if impl in let loop match mod move mut pub ref \
    return self Self static struct super trait true type unsafe use where while async await dyn abstract become box do final \
    gen macro override priv typeof unsized virtual yield try ";

/// Whether a name has another spelling that means the same.
fn has_spellings(token: &TokenTree) -> bool {
    match token {
        TokenTree::Ident(name) => *name == "gen" || name.to_string().starts_with("r#"),
        TokenTree::Group(group) => {
            is_label(group) || group.stream().into_iter().any(|token| has_spellings(&token))
        }
        _ => false,
    }
}

/// Whether these are the invisible brackets around a `$label:lifetime`.
fn is_label(group: &Group) -> bool {
    let mut tokens = group.stream().into_iter();
    let has_mark = matches!(tokens.next(), Some(TokenTree::Punct(mark)) if mark.as_char() == '\'');
    group.delimiter() == Delimiter::None && has_mark && tokens.count() == 1
}

/// One spelling for each name: `r#x` is `x`, also as a label.
pub(crate) fn one_spelling(tokens: TokenStream) -> TokenStream {
    let spelled = |token| match token {
        // The others keep the places of their brackets.
        token if !has_spellings(&token) => token.into(),
        TokenTree::Ident(name) => {
            let text = name.to_string();
            let plain = text.trim_start_matches("r#");
            // Of these only `gen` is also a name without `r#`, in older editions.
            let is_word = WORDS.contains(&format!(" {plain} "));
            let name =
                if is_word { Ident::new_raw(plain, name.span()) } else { Ident::new(plain, name.span()) };
            TokenTree::Ident(name).into()
        }
        TokenTree::Group(group) if is_label(&group) => one_spelling(group.stream()),
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), one_spelling(group.stream()));
            inner.set_span(group.span());
            TokenTree::Group(inner).into()
        }
        token => token.into(),
    };
    tokens.into_iter().map::<TokenStream, _>(spelled).collect()
}

/// The names of one kernel.
#[derive(Default)]
pub(crate) struct Names {
    /// How many variables have had a name.
    used: HashMap<String, usize>,
    scopes: Vec<Vec<(Key, Variable)>>,
    /// Declarations and labels so far.
    count: usize,
    /// The numbers of the witnesses of all variables.
    variables: BTreeSet<usize>,
    /// What is written of the proof in each open block.
    proof: RefCell<Vec<Written>>,
}

/// What tells a name from others: its letters, and as far as is known the macro that wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    letters: String,
    context: String,
}

/// A block of the proof.
#[derive(Default)]
struct Written {
    tokens: TokenStream,
    /// The uses in it since the last declaration of a name of these letters: one is enough.
    uses: HashSet<(Key, usize)>,
}

/// A variable of the function.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    /// Its name in the tree.
    pub name: String,
    pub kind: VariableKind,
    /// The number of its witness.
    pub ty: usize,
    /// The number of its declaration.
    pub declared: usize,
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

/// The symbol of a kernel of this name. It ends in `_`, as no word, macro or function of C++ and of its GPU dialects does.
pub(crate) fn symbol(name: &str) -> String {
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
    text.push('_');
    // Two underscores are the compiler's, wherever they stand.
    while text.contains("__") {
        text = text.replace("__", "_u_");
    }
    text
}

/// Whether a text is one identifier of C++.
pub(crate) fn is_identifier(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_letter) && text.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

impl Key {
    pub(crate) fn new(name: &Ident) -> Self {
        Self { letters: name.to_string(), context: context(name.span()) }
    }

    /// The best of several with their keys, the innermost first: one of the same macro, or else one of the same letters.
    pub(crate) fn best<'k, T>(&self, all: impl Iterator<Item = (&'k Self, T)> + Clone) -> Option<T> {
        let alike = all.filter(|(key, _)| key.letters == self.letters);
        let found = alike.clone().find(|(key, _)| **key == *self);
        found.or_else(|| alike.into_iter().next()).map(|(_, found)| found)
    }
}

/// Which macro wrote a token: the number that rustc gives to it, which it tells nowhere else. Nothing rests on it: where the text
/// is another one, names are told apart by their letters alone, and the proof fails where that is wrong.
fn context(span: Span) -> String {
    if !proc_macro::is_available() {
        return String::new();
    }
    let text = format!("{:?}", span.unwrap());
    let number = text.split_once('#').map_or("", |(_, rest)| rest);
    number.chars().take_while(char::is_ascii_digit).collect()
}

/// The text of some tokens, in which those of different macros are different.
pub(crate) fn text_of(tokens: TokenStream) -> String {
    let texts = tokens.into_iter().map(|token| match token {
        TokenTree::Ident(name) => format!("{name}#{}", context(name.span())),
        TokenTree::Group(group) => format!("{:?}{}", group.delimiter(), text_of(group.stream())),
        token => token.to_string(),
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// The variables and labels of a body, by their letters, with the macros that wrote them.
#[derive(Default)]
struct WrittenBy {
    declared: HashSet<String>,
    contexts: HashMap<String, HashSet<String>>,
}

/// The letters that a body has for two names from different macros, one of which is a variable or a label.
pub(crate) fn alike(block: &Block, parameters: &[&Ident]) -> HashSet<String> {
    let mut found = WrittenBy::default();
    parameters.iter().for_each(|name| found.declare(name));
    found.visit_block(block);
    let WrittenBy { mut declared, contexts } = found;
    declared.retain(|name| contexts.get(name).is_some_and(|contexts| contexts.len() > 1));
    declared
}

impl WrittenBy {
    fn note(&mut self, letters: String, span: Span) {
        self.contexts.entry(letters).or_default().insert(context(span));
    }

    fn declare(&mut self, name: &Ident) {
        self.declared.insert(name.to_string());
        self.note(name.to_string(), name.span());
    }

    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Ident(name) => self.note(name.to_string(), name.span()),
                TokenTree::Group(group) => self.tokens(group.stream()),
                _ => {}
            }
        }
    }
}

impl<'a> Visit<'a> for WrittenBy {
    fn visit_pat_ident(&mut self, name: &'a syn::PatIdent) {
        self.declare(&name.ident);
        visit::visit_pat_ident(self, name);
    }

    fn visit_expr_path(&mut self, path: &'a syn::ExprPath) {
        if let Some(name) = path.path.get_ident() {
            self.note(name.to_string(), name.span());
        }
    }

    fn visit_lifetime(&mut self, label: &'a Lifetime) {
        self.declared.insert(label.to_string());
        self.note(label.to_string(), label.ident.span());
    }

    fn visit_macro(&mut self, call: &'a Macro) {
        self.tokens(call.tokens.clone());
    }
}

impl Names {
    pub(crate) fn enter(&mut self) {
        self.scopes.push(Vec::new());
        self.proof.get_mut().push(Written::default());
    }

    pub(crate) fn leave(&mut self) {
        self.scopes.pop();
        let written = self.proof.get_mut().pop().unwrap_or_default().tokens;
        if !written.is_empty() {
            self.write(quote!({ #written }));
        }
    }

    fn write(&self, tokens: TokenStream) {
        if let Some(last) = self.proof.borrow_mut().last_mut() {
            last.tokens.extend(tokens);
        }
    }

    /// The proof of what was found so far: statements that rustc does not compile where it finds other variables and labels. They
    /// do not run.
    pub(crate) fn proof(&self) -> TokenStream {
        self.proof.borrow().iter().map(|written| written.tokens.clone()).collect()
    }

    /// A name of the tree like this one, which nothing has yet.
    pub(crate) fn fresh(&mut self, like: &str) -> String {
        let count = self.used.entry(like.to_owned()).or_default();
        *count += 1;
        if *count == 1 { like.to_owned() } else { format!("{like}#{}", *count - 1) }
    }

    fn count(&mut self) -> usize {
        self.count += 1;
        self.count
    }

    /// Declares a variable. Gives its name in the tree.
    pub(crate) fn declare(&mut self, rust: &Ident, kind: VariableKind, ty: usize) -> String {
        let name = self.fresh(&rust.unraw().to_string());
        self.bind(rust, name.clone(), kind, ty);
        name
    }

    /// Declares a variable of this name in the tree.
    pub(crate) fn bind(&mut self, rust: &Ident, name: String, kind: VariableKind, ty: usize) {
        let (key, declared) = (Key::new(rust), self.count());
        self.variables.insert(ty);
        for written in self.proof.get_mut() {
            written.uses.retain(|(other, _)| other.letters != key.letters);
        }
        // With a pattern after it, for which a constant of this name cannot stand.
        self.write(quote_spanned!(rust.span()=> let #rust @ _ = __gpumem::Language::name::<#declared>();));
        if let Some(scope) = self.scopes.last_mut() {
            scope.push((key, Variable { name, kind, ty, declared }));
        }
    }

    /// The variable that a name stands for, which is used here.
    pub(crate) fn find(&self, rust: &Ident) -> Option<&Variable> {
        let key = Key::new(rust);
        let visible = self.scopes.iter().rev().flat_map(|scope| scope.iter().rev());
        let found = key.best(visible.map(|(key, variable)| (key, variable)))?;
        let number = found.declared;
        let mut proof = self.proof.borrow_mut();
        let used = (key, number);
        if !proof.iter().any(|written| written.uses.contains(&used))
            && let Some(last) = proof.last_mut()
        {
            last.tokens
                .extend(quote_spanned!(rust.span()=> __gpumem::Language::is_name::<#number, _>(#rust);));
            last.uses.insert(used);
        }
        Some(found)
    }

    /// The numbers of the witnesses of all variables so far.
    pub(crate) fn variables(&self) -> impl Iterator<Item = usize> {
        self.variables.iter().copied()
    }

    /// How many variables the innermost block has so far.
    pub(crate) fn visible(&self) -> usize {
        self.scopes.last().map_or(0, Vec::len)
    }

    /// The names that were bound since then in the innermost block, each with its name in the tree.
    pub(crate) fn places_since(&self, visible: usize) -> BTreeSet<(String, String)> {
        let scope = self.scopes.last().map(Vec::as_slice).unwrap_or_default();
        let bound = scope.get(visible..).unwrap_or_default();
        bound.iter().map(|(key, variable)| (key.letters.clone(), variable.name.clone())).collect()
    }

    /// Whether a variable of these letters is of this kind.
    pub(crate) fn has(&self, letters: &str, kind: VariableKind) -> bool {
        let mut all = self.scopes.iter().flatten();
        all.any(|(key, variable)| key.letters == letters && variable.kind == kind)
    }

    /// Begins the body of a loop with a label. Gives its number.
    pub(crate) fn enter_label(&mut self) -> usize {
        self.proof.get_mut().push(Written::default());
        self.count()
    }

    /// Ends the body of the loop.
    pub(crate) fn leave_label(&mut self, label: &Lifetime, number: usize) {
        let written = self.proof.get_mut().pop().unwrap_or_default().tokens;
        let span = label.ident.span();
        self.write(
            quote_spanned!(span=> let _ = #label: { #written __gpumem::Language::name::<#number>() };),
        );
    }

    /// A jump to the label of this number.
    pub(crate) fn jump(&self, label: &Lifetime, number: usize) {
        let span = label.ident.span();
        self.write(quote_spanned!(span=> if __gpumem::Language::given() { break #label __gpumem::Language::label::<#number, _>() }));
    }
}

/// The name of a field in the tree.
pub(crate) fn member_name(member: &syn::Member) -> String {
    match member {
        syn::Member::Named(name) => name.unraw().to_string(),
        syn::Member::Unnamed(index) => index.index.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_has_a_unique_name() {
        let mut names = Names::default();
        names.enter();
        let ident = |name: &str| syn::parse_str::<Ident>(name).unwrap();
        let declare = |names: &mut Names, name| names.declare(&ident(name), VariableKind::Fixed, 0);
        assert_eq!(declare(&mut names, "total"), "total");
        names.enter();
        assert_eq!(declare(&mut names, "total"), "total#1");
        assert_eq!(names.find(&ident("total")).unwrap().name, "total#1");
        names.leave();
        assert_eq!(names.find(&ident("total")).unwrap().name, "total");
        assert_eq!(declare(&mut names, "r#struct"), "struct");
    }

    #[test]
    fn no_kernel_has_the_name_of_a_word() {
        let symbols = ["total", "float", "r#struct", "sqrt", "__x", "_X", "größe", "x__"].map(symbol);
        let expected = ["total_", "float_", "struct_", "sqrt_", "v_u_x_", "v_X_", "gruf6udfe_", "x_u_u_"];
        assert_eq!(symbols, expected);
    }
}
