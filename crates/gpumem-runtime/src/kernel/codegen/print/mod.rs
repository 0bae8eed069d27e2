//! C++ of a kernel's tree.

mod expression;
mod statement;

use super::{Constant, S, TypeInfo};
use std::fmt::Write;

/// What the C++ of a kernel that was written in Rust needs beside the prelude.
const ARITHMETIC: &str = include_str!("../arithmetic.hpp");

/// A parameter of a kernel.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its name in C++.
    pub name: &'static str,
    /// Its type.
    pub info: TypeInfo,
}

/// A kernel that can be printed.
#[derive(Debug, Clone)]
pub struct Program {
    /// The kernel's symbol.
    pub name: &'static str,
    /// The Rust file that it stands in.
    pub file: &'static str,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// What the witnesses have seen, by number.
    pub types: Vec<TypeInfo>,
    /// Its constants, by number.
    pub constants: Vec<Constant>,
    /// Its body.
    pub body: &'static [S],
}

impl Program {
    /// The source, for [`KernelDeclaration::portable`](crate::kernel::KernelDeclaration::portable). Its lines are those of the
    /// Rust file.
    pub fn source(&self) -> String {
        let mut out =
            format!("#line 1 \"arithmetic.hpp\"\n{ARITHMETIC}\n#line 1 \"{}\"\n", escaped(self.file));
        out.push_str("using namespace gpumem;\n");
        for (number, constant) in
            self.constants.iter().enumerate().filter(|(_, constant)| constant.is_table())
        {
            let _ = writeln!(
                out,
                "__constant__ {} {} = {};",
                constant.info.name,
                table(number),
                constant.literal
            );
        }
        let parameter = |parameter: &Parameter| format!("{} {}", parameter.info.name, parameter.name);
        let parameters: Vec<String> = self.parameters.iter().map(parameter).collect();
        let _ = writeln!(out, "GPUMEM_KERNEL {}({}) {{", self.name, parameters.join(", "));
        self.statements(&mut out, self.body, 1);
        out.push_str("}\n");
        out
    }

    fn type_at(&self, number: usize) -> &TypeInfo {
        // The macro makes as many witnesses as it numbers.
        self.types.get(number).unwrap_or(&UNKNOWN)
    }
}

static UNKNOWN: TypeInfo = TypeInfo { name: String::new(), form: super::Form::Other };

/// The name of a constant that is an array.
fn table(number: usize) -> String {
    format!("constant_{number}")
}

fn escaped(file: &str) -> String {
    file.replace('\\', "\\\\").replace('"', "\\\"")
}
