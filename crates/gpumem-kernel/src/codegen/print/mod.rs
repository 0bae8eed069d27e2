//! C++ of a kernel's tree.

mod expression;
mod finite;
mod name;
mod narrow;
mod statement;

use super::{PrintedConstant, Record, S, TypeInfo};
use crate::source::CONSTANT_ALIGN;
pub(super) use name::member;
use name::{identifier, variable};
use narrow::NarrowVariables;
use std::{collections::HashMap, fmt::Write, rc::Rc};

/// Helpers that the C++ of a kernel written in Rust needs beside the prelude.
const ARITHMETIC: &str = include_str!("../arithmetic.hpp");

/// A parameter of a kernel.
#[derive(Debug, Clone)]
pub struct PrintedParameter {
    /// The name of its variable.
    pub name: &'static str,
    pub info: TypeInfo,
}

/// A kernel, or a function of one, that can be printed.
#[derive(Debug, Clone)]
pub struct PrintedProgram {
    /// The kernel's symbol, or the function's name.
    pub name: &'static str,
    /// The Rust file of the kernel.
    pub file: &'static str,
    pub parameters: Vec<PrintedParameter>,
    pub result: TypeInfo,
    /// The types that the witnesses have seen, by number.
    pub types: Vec<TypeInfo>,
    /// Bytes of each of its variables.
    pub variables: Vec<usize>,
    /// Its constants, by number.
    pub constants: Vec<PrintedConstant>,
    /// The functions that it calls, by number.
    pub functions: Vec<Rc<PrintedProgram>>,
    pub body: &'static [S],
}

impl PrintedProgram {
    /// Bytes of the variables that are there at one time: its own, and those of the function that has most.
    pub(crate) fn variable_bytes(&self) -> usize {
        self.bytes_with(&mut HashMap::new())
    }

    /// `known`: the functions so far. Each is asked once, however many call it.
    fn bytes_with(&self, known: &mut HashMap<*const Self, usize>) -> usize {
        let mut most = 0;
        for function in &self.functions {
            let bytes = known.get(&Rc::as_ptr(function)).copied();
            let bytes = bytes.unwrap_or_else(|| function.bytes_with(known));
            known.insert(Rc::as_ptr(function), bytes);
            most = most.max(bytes);
        }
        self.variables.iter().fold(most, |all, bytes| all.saturating_add(*bytes))
    }

    /// The source, for [`KernelDef::source`](crate::KernelDef::portable). Its lines are those of the
    /// Rust file. With the bytes of constant memory that its tables take.
    pub(crate) fn source(&self) -> (String, usize) {
        let mut out = format!("#line 1 \"arithmetic.hpp\"\n{ARITHMETIC}\n#line 1 \"records\"\n");
        out.push_str("using namespace gpumem;\n");
        let mut records = Vec::new();
        self.records(&mut Vec::new(), &mut records, &mut out);
        let mut printed = Functions::default();
        let functions = self.functions(&mut printed);
        for (_, text) in &printed.texts {
            out.push_str(text);
        }
        let _ = writeln!(out, "#line 1 \"{}\"", escaped(self.file));
        self.printed(self.name, "GPUMEM_KERNEL", "", functions, &mut out);
        // Several may have one name.
        for (at, record) in records.iter().enumerate() {
            let alike = records.iter().take(at).filter(|other| other.rust == record.rust).count();
            out = out.replace(&record.name, &identifier(record.rust, alike));
        }
        (out, printed.tables.saturating_add(self.table_bytes()))
    }

    /// Declares the records of all types, each once. `visited` are the functions whose records are declared.
    fn records<'p>(
        &'p self,
        visited: &mut Vec<*const PrintedProgram>,
        known: &mut Vec<&'p Record>,
        out: &mut String,
    ) {
        for function in &self.functions {
            if !visited.contains(&Rc::as_ptr(function)) {
                visited.push(Rc::as_ptr(function));
                function.records(visited, known, out);
            }
        }
        let parameters = self.parameters.iter().map(|parameter| &parameter.info);
        let constants = self.constants.iter().map(|constant| &constant.info);
        for record in parameters.chain(&self.types).chain(constants).flat_map(|info| &info.records) {
            if !known.contains(&record) {
                known.push(record);
                record.declare(out);
            }
        }
    }

    /// Bytes of its own tables. In whatever order a compiler lays them out, none leaves a larger gap.
    fn table_bytes(&self) -> usize {
        let tables = self.constants.iter().filter(|constant| constant.is_table());
        let bytes =
            tables.map(|table| table.bytes.checked_next_multiple_of(CONSTANT_ALIGN).unwrap_or(usize::MAX));
        bytes.fold(0, usize::saturating_add)
    }

    /// Prints the functions that are not among those printed yet. Gives their names.
    fn functions(&self, printed: &mut Functions) -> Vec<String> {
        let mut names = Vec::new();
        for function in &self.functions {
            let address = Rc::as_ptr(function);
            let known = printed.names.iter().find(|(known, _)| *known == address);
            let name = known.map(|(_, name)| name.clone()).unwrap_or_else(|| {
                let name = function.as_function(printed);
                printed.names.push((address, name.clone()));
                name
            });
            names.push(name);
        }
        names
    }

    /// Prints a function before the kernel, once for all calls of the same types. Gives its name.
    fn as_function(&self, printed: &mut Functions) -> String {
        let functions = self.functions(printed);
        let head = format!("GPUMEM_DEVICE {}", self.result.name);
        for count in 0.. {
            let name = identifier(self.name, count);
            let mut text = format!("namespace functions {{\n#line 1 \"{}\"\n", escaped(self.file));
            self.printed(&name, &head, &name, functions.clone(), &mut text);
            text.push_str("}  // namespace functions\n");
            match printed.texts.iter().find(|(known, _)| *known == name) {
                Some((_, known)) if *known != text => continue,
                Some(_) => {}
                None => {
                    printed.tables = printed.tables.saturating_add(self.table_bytes());
                    printed.texts.push((name.clone(), text));
                }
            }
            return format!("functions::{name}");
        }
        String::new()
    }

    /// Prints constants, head and body.
    fn printed(&self, name: &str, head: &str, prefix: &str, functions: Vec<String>, out: &mut String) {
        let (types, constants) = (self.types.as_slice(), self.constants.as_slice());
        let result = self.result.name.as_str();
        let mut body = Body { types, constants, functions, prefix, result, narrow: NarrowVariables::new() };
        body.find_narrow(self.body, self.body);
        for (number, constant) in
            self.constants.iter().enumerate().filter(|(_, constant)| constant.is_table())
        {
            let (ty, table) = (&constant.info.name, body.table(number));
            let table = format!("__constant__ {ty} {table} = {};", constant.literal);
            let _ = match prefix {
                // A kernel may have any name.
                "" => writeln!(out, "namespace functions {{ {table} }}"),
                _ => writeln!(out, "{table}"),
            };
        }
        let parameter =
            |parameter: &PrintedParameter| format!("{} {}", parameter.info.name, variable(parameter.name));
        let parameters: Vec<String> = self.parameters.iter().map(parameter).collect();
        let _ = writeln!(out, "{head} {name}({}) {{", parameters.join(", "));
        body.statements(out, self.body, 1);
        out.push_str("}\n");
    }
}

/// The functions that are printed before a kernel.
#[derive(Default)]
struct Functions {
    /// By their names.
    texts: Vec<(String, String)>,
    /// The names of the trees that are printed.
    names: Vec<(*const PrintedProgram, String)>,
    /// Bytes of their tables.
    tables: usize,
}

/// The names that the statements of a body refer to.
struct Body<'p> {
    types: &'p [TypeInfo],
    constants: &'p [PrintedConstant],
    /// The names of the functions that it calls.
    functions: Vec<String>,
    /// The prefix of the names of its constants.
    prefix: &'p str,
    /// The type of what it returns.
    result: &'p str,
    /// Its variables that have 32 bits instead of 64.
    narrow: NarrowVariables,
}

impl Body<'_> {
    fn type_at(&self, number: usize) -> &TypeInfo {
        // The macro makes as many witnesses as it numbers.
        self.types.get(number).unwrap_or(&UNKNOWN)
    }

    /// The name of a constant that is an array.
    fn table(&self, number: usize) -> String {
        format!("{}constant_{number}", self.prefix)
    }

    /// The same where it is used.
    fn table_from_body(&self, number: usize) -> String {
        format!("functions::{}", self.table(number))
    }
}

static UNKNOWN: TypeInfo = TypeInfo { name: String::new(), form: super::Form::Other, records: Vec::new() };

/// The name of a file between quotes. A line's end in it would end the directive.
fn escaped(file: &str) -> String {
    file.chars()
        .map(|c| match c {
            '\\' | '"' => format!("\\{c}"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => "?".to_owned(),
            c => c.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_stay_between_their_quotes() {
        assert_eq!(escaped("a\\b\"c.rs"), "a\\\\b\\\"c.rs");
        assert_eq!(escaped("a\n#define u32 f32\r\u{85}.rs"), "a?#define u32 f32??.rs");
        assert_eq!(escaped("größe.rs"), "größe.rs");
    }
}
