//! Headers to Rust: types and constants by bindgen, functions as tables that are filled at run time.

use super::headers::{Headers, Table};
use anyhow::{Context, Result, bail};
use bindgen::callbacks::{EnumVariantCustomBehavior, EnumVariantValue, ParseCallbacks};
use quote::ToTokens;
use std::{collections::BTreeSet, fmt::Write, path::Path};
use syn::{FnArg, ForeignItem, ForeignItemFn, Item, ReturnType};

/// What the names of a library and bindgen's code do not keep to.
const LINTS: &str = r#"#![allow(
    missing_docs,
    missing_debug_implementations,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    unused_imports,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc,
    reason = "generated, in the names of the library"
)]"#;

/// The whole text of the file.
pub(super) fn generate(root: &Path, headers: &Headers) -> Result<String> {
    let declarations = declarations(headers)?;
    let mut file = syn::parse_file(&declarations).context("bindgen's output")?;
    let functions = take_functions(&mut file);
    let mut text = format!(
        "// Made by `cargo xtask bindings` from the headers of {}. Not to be edited.\n\n{LINTS}\n\n\
         use crate::functions;\nuse core::ffi::*;\n\n",
        headers.title
    );
    let mut left: BTreeSet<String> =
        functions.iter().map(|function| function.sig.ident.to_string()).collect();
    let mut tables = String::new();
    for table in headers.tables {
        let of_table: Vec<_> = functions
            .iter()
            .filter(|function| {
                let name = function.sig.ident.to_string();
                name.starts_with(table.prefix) && left.remove(&name)
            })
            .collect();
        if of_table.is_empty() {
            bail!("the headers have none of the functions of {}", table.name);
        }
        write_table(&mut tables, table, &of_table)?;
    }
    text.push_str(&file.to_token_stream().to_string().replace("core :: ffi ::", ""));
    text.push_str(&tables.replace("core::ffi::", ""));
    rustfmt(root, &text)
}

/// bindgen's output for the headers: types, constants, and functions in a separate block.
pub(super) fn declarations(headers: &Headers) -> Result<String> {
    let mut source = String::new();
    for include in headers.includes {
        writeln!(source, "#include <{include}>")?;
    }
    let stubs = tempfile::tempdir()?;
    for (name, text) in headers.stubs {
        let path = stubs.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(stubs.path()))?;
        std::fs::write(path, text)?;
    }
    let found = headers.includes.first().and_then(|include| headers.place.find(include));
    let folders = [Some(stubs.path().to_owned()), found].into_iter().flatten();
    let mut builder = bindgen::builder()
        .header_contents("headers.h", &source)
        .clang_args(headers.defines.iter().map(|define| format!("-D{define}")))
        .clang_args(folders.map(|folder| format!("-I{}", folder.display())))
        .use_core()
        .ctypes_prefix("core::ffi")
        .default_enum_style(bindgen::EnumVariation::NewType { is_bitfield: false, is_global: false })
        .prepend_enum_name(false)
        .merge_extern_blocks(true)
        .sort_semantically(true)
        .generate_comments(false)
        .derive_default(true)
        .derive_eq(true)
        .disable_header_comment()
        .parse_callbacks(Box::new(UsedValues(headers.values)))
        .formatter(bindgen::Formatter::None);
    for function in headers.tables.iter().flat_map(|table| table.functions) {
        builder = builder.allowlist_function(function);
    }
    for name in headers.opaque {
        builder = builder.allowlist_type(name).opaque_type(name);
    }
    for name in headers.types {
        builder = builder.allowlist_type(name);
    }
    for name in headers.constants {
        builder = builder.allowlist_var(name);
    }
    Ok(builder.generate()?.to_string())
}

/// Leaves out the values of enumerations that are not used.
#[derive(Debug)]
struct UsedValues(&'static [(&'static str, &'static [&'static str])]);

impl ParseCallbacks for UsedValues {
    fn enum_variant_behavior(
        &self,
        _enumeration: Option<&str>,
        value: &str,
        _number: EnumVariantValue,
    ) -> Option<EnumVariantCustomBehavior> {
        let is_unused = |(prefix, used): &(&str, &[&str])| {
            value.strip_prefix(prefix).is_some_and(|value| !used.contains(&value))
        };
        self.0.iter().any(is_unused).then_some(EnumVariantCustomBehavior::Hide)
    }
}

/// Takes the functions out, for the tables.
pub(super) fn take_functions(file: &mut syn::File) -> Vec<ForeignItemFn> {
    let mut functions = Vec::new();
    file.items.retain(|item| {
        let Item::ForeignMod(block) = item else { return true };
        functions.extend(block.items.iter().filter_map(|item| match item {
            ForeignItem::Fn(function) => Some(function.clone()),
            _ => None,
        }));
        false
    });
    functions
}

fn write_table(text: &mut String, table: &Table, functions: &[&ForeignItemFn]) -> Result<()> {
    writeln!(text, "\nfunctions! {{\n    /// {}\n    {} {{", table.what, table.name)?;
    for function in functions {
        if function.sig.variadic.is_some() {
            bail!("{} takes any number of arguments", function.sig.ident);
        }
        let mut arguments = Vec::new();
        for argument in &function.sig.inputs {
            let FnArg::Typed(argument) = argument else { bail!("a function with a receiver") };
            arguments.push(format!("{}: {}", tokens(&argument.pat), tokens(&argument.ty)));
        }
        let result = match &function.sig.output {
            ReturnType::Default => "()".to_owned(),
            ReturnType::Type(_, result) => tokens(result),
        };
        if table.relaxed.iter().any(|name| function.sig.ident == name) {
            writeln!(text, "        #[relaxed]")?;
        }
        writeln!(text, "        fn {}({}) -> {result};", function.sig.ident, arguments.join(", "))?;
    }
    text.push_str("    }\n}\n");
    Ok(())
}

/// A type or a name as one would write it.
pub(super) fn tokens(part: &impl ToTokens) -> String {
    let mut text = part.to_token_stream().to_string();
    for (spaced, plain) in
        [(":: ", "::"), (" ::", "::"), ("* mut", "*mut"), ("* const", "*const"), (" < ", "<"), (" >", ">")]
    {
        text = text.replace(spaced, plain);
    }
    text
}

fn rustfmt(root: &Path, text: &str) -> Result<String> {
    let done = duct::cmd!("rustfmt", "--edition", "2024", "--emit", "stdout")
        .dir(root)
        .stdin_bytes(text)
        .stdout_capture()
        .run()
        .context("rustfmt")?;
    Ok(String::from_utf8(done.stdout)?)
}
