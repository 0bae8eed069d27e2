//! RCCL has NCCL's functions: its header is compared with the tables of `gpumem_sys::nccl`.

use super::{
    generate::{declarations, take_functions, tokens},
    headers::{Headers, RCCL},
};
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use quote::ToTokens;
use std::collections::BTreeMap;
use syn::{FnArg, ForeignItemFn, ImplItem, Item, parse::ParseStream};

/// The files with tables, and with the numbers of enums.
const FILES: [&str; 2] = ["bindings.rs", "rccl.rs"];

/// Counts of an enum's values, which grow with it.
const COUNTS: [&str; 2] = ["ncclNumResults", "ncclNumTypes"];

/// Returns the differences between RCCL's header and the crate, or why they cannot be told.
pub(super) fn disagreements(workspace: &Workspace) -> Result<Result<Vec<String>, String>> {
    if let Some(reason) = RCCL.missing() {
        return Ok(Err(reason));
    }
    let mut ours = Declared::default();
    for name in FILES {
        let path = workspace.root().join("crates/gpumem-sys/src/nccl").join(name);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        ours.add(syn::parse_file(&text)?)?;
    }
    let theirs = Declared::of(&RCCL)?;
    let mut found = Vec::new();
    for (what, ours, theirs) in
        [("fn", &ours.functions, &theirs.functions), ("the number", &ours.numbers, &theirs.numbers)]
    {
        // RCCL has more than is declared here, and an older one has less.
        let both: Vec<_> =
            theirs.iter().filter_map(|(name, there)| Some((name, there, ours.get(name)?))).collect();
        if both.is_empty() {
            found.push(format!("it shares no {what} with the crate"));
        }
        let other = both.into_iter().filter(|(_, there, here)| there != here);
        found.extend(other.map(|(name, there, here)| format!("{what} {name} is {there} and not {here}")));
    }
    Ok(Ok(found))
}

/// Functions and the numbers of enums, by name.
#[derive(Default)]
struct Declared {
    functions: BTreeMap<String, String>,
    numbers: BTreeMap<String, String>,
}

impl Declared {
    /// The declarations of a header.
    fn of(headers: &Headers) -> Result<Self> {
        let mut file = syn::parse_file(&declarations(headers)?).context("bindgen's output")?;
        let mut declared = Self::default();
        for function in take_functions(&mut file) {
            declared.add_function(&function);
        }
        declared.add(file)?;
        Ok(declared)
    }

    /// Adds the tables and the enums of a file.
    fn add(&mut self, file: syn::File) -> Result<()> {
        for item in file.items {
            match item {
                Item::Macro(table) if table.mac.path.is_ident("functions") => {
                    for function in table.mac.parse_body_with(functions).context("a table of functions")? {
                        self.add_function(&function);
                    }
                }
                Item::Impl(block) => self.add_numbers(&block),
                _ => {}
            }
        }
        Ok(())
    }

    /// Keeps the types only: the names of arguments do not matter.
    fn add_function(&mut self, function: &ForeignItemFn) {
        let arguments = function.sig.inputs.iter().map(|argument| match argument {
            FnArg::Typed(argument) => plain(&argument.ty),
            FnArg::Receiver(_) => "self".to_owned(),
        });
        let arguments: Vec<_> = arguments.collect();
        let result = match &function.sig.output {
            syn::ReturnType::Default => "()".to_owned(),
            syn::ReturnType::Type(_, result) => plain(result),
        };
        self.functions
            .insert(function.sig.ident.to_string(), format!("({}) -> {result}", arguments.join(", ")));
    }

    /// The constants of an enum, which is a structure around a number.
    fn add_numbers(&mut self, block: &syn::ItemImpl) {
        for item in &block.items {
            if let ImplItem::Const(number) = item {
                let name = number.ident.to_string();
                if !COUNTS.contains(&name.as_str()) {
                    self.numbers.insert(name, plain(&number.expr));
                }
            }
        }
    }
}

/// The functions of a table: attributes, its name, and the functions in braces.
fn functions(input: ParseStream<'_>) -> syn::Result<Vec<ForeignItemFn>> {
    input.call(syn::Attribute::parse_outer)?;
    input.parse::<syn::Ident>()?;
    let content;
    syn::braced!(content in input);
    let mut functions = Vec::new();
    while !content.is_empty() {
        functions.push(content.parse()?);
    }
    Ok(functions)
}

/// A type as both headers would name it.
fn plain(part: &impl ToTokens) -> String {
    tokens(part).replace("core::ffi::", "").replace("::", "").replace("hipStream_t", "cudaStream_t")
}
