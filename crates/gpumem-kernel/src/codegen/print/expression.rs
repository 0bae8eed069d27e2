//! Expressions.

use super::{
    Body,
    name::{member, variable},
};
use crate::codegen::{DeviceConst, E, Form, TypeInfo, constant::integer};

/// The function of `arithmetic.hpp` for an operator.
pub(super) fn function(operator: &str) -> &'static str {
    match operator {
        "+" => "add",
        "-" => "sub",
        "*" => "mul",
        "/" => "div",
        "%" => "rem",
        "<<" => "shl",
        _ => "shr",
    }
}

/// Tells whether this operator means the same in C++ and in Rust, on values of this type.
pub(super) fn is_plain(operator: &str, info: &TypeInfo) -> bool {
    match info.form {
        Form::Float => operator != "%",
        Form::Other => true,
        Form::Half | Form::Complex => false,
        Form::Wrapping | Form::Integer if matches!(operator, "&" | "|" | "^") => {
            info.form == Form::Wrapping || is_wide(info)
        }
        // A compiler gets products of 64 bits wrong: see `factor` in `arithmetic.hpp`.
        Form::Wrapping => matches!(operator, "+" | "-") || operator == "*" && info.name == "u32",
        _ => false,
    }
}

/// Whether C++ does not promote the type to `int`.
fn is_wide(info: &TypeInfo) -> bool {
    matches!(info.name.as_str(), "i32" | "i64")
}

impl Body<'_> {
    /// An expression that may stand beside any operator.
    pub(super) fn operand(&self, e: &E) -> String {
        match e {
            // A second minus beside the first would be another operator.
            E::Arithmetic(..) | E::Compare(..) | E::Conditional(..) | E::Cast(..) | E::Negate(..) => {
                format!("({})", self.expression(e))
            }
            _ => self.expression(e),
        }
    }

    fn list(&self, list: &[E]) -> String {
        let texts: Vec<String> = list.iter().map(|e| self.expression(e)).collect();
        texts.join(", ")
    }

    /// A value that becomes one of its type by itself: a new variable, an index.
    pub(super) fn initial(&self, value: &E) -> String {
        match value {
            E::Id(name, arguments) => self.id(name, arguments),
            value if self.most(value).is_some() => self.narrow(value),
            value => self.expression(value),
        }
    }

    /// The global ids of a work-item, that along x last.
    fn own(&self, ty: usize) -> String {
        let ids: Vec<String> =
            (0..self.type_at(ty).len()).rev().map(|axis| format!("global_id({axis})")).collect();
        ids.join(", ")
    }

    /// Whether an index is a value of several.
    fn is_list(&self, at: &E, of: usize) -> bool {
        let info = self.type_at(of);
        info.form == Form::Local && info.len() > 1 && !matches!(at, E::Var(_) | E::Own(_))
    }

    /// The call of an id without the conversion to `u64`.
    pub(super) fn id(&self, name: &str, arguments: &[E]) -> String {
        let axes: Vec<String> = arguments.iter().map(|axis| self.axis(axis)).collect();
        format!("{name}({})", axes.join(", "))
    }

    /// The number of an axis, which the prelude takes as an `int`.
    fn axis(&self, axis: &E) -> String {
        match axis {
            // More digits may be more than an `int` has.
            E::Literal(digits, _) | E::Suffixed(digits, _) if digits.len() < 10 => (*digits).to_owned(),
            _ => format!("rust::axis({})", self.expression(axis)),
        }
    }

    pub(super) fn expression(&self, e: &E) -> String {
        match e {
            E::Var(name) if self.narrow.contains_key(name) => format!("(u64){}", variable(name)),
            E::Var(name) => variable(name),
            E::Text(text) => (*text).to_owned(),
            E::Literal(digits, ty) => literal(digits, &self.type_at(*ty).name, false),
            E::Suffixed(digits, name) => literal(digits, name, false),
            E::Constant(number) => match self.constants.get(*number) {
                Some(constant) if !constant.is_table() => constant.literal.clone(),
                _ => self.table_from_body(*number),
            },
            E::Arithmetic(operator, ty, a, b) => self.arithmetic(operator, *ty, a, b),
            E::Compare(operator, a, b) if self.most(a).is_some() && self.most(b).is_some() => {
                format!("{} {operator} {}", self.narrow_operand(a), self.narrow_operand(b))
            }
            E::Compare(operator, a, b) => format!("{} {operator} {}", self.operand(a), self.operand(b)),
            E::Negate(ty, a) => match (self.type_at(*ty).form, a) {
                (Form::Float, _) => format!("-{}", self.operand(a)),
                (Form::Complex, _) => format!("rust::negated({})", self.expression(a)),
                (_, E::Literal(digits, _)) => literal(digits, &self.type_at(*ty).name, true),
                _ => format!("rust::neg({})", self.expression(a)),
            },
            E::Not(ty, a) => match self.type_at(*ty) {
                TypeInfo { form: Form::Bool, .. } => format!("!{}", self.operand(a)),
                info => format!("({})~{}", info.name, self.operand(a)),
            },
            E::Cast(from, to, a) => self.cast(*from, *to, a),
            E::Id(name, arguments) => format!("(u64){}", self.id(name, arguments)),
            E::Call(name, arguments) => format!("{name}({})", self.list(arguments)),
            E::Index(base, _, [E::Position(at, of)]) if self.is_list(at, *of) => {
                format!("rust::element({}, {})", self.expression(base), self.expression(at))
            }
            E::Index(base, ty, at) => {
                let index = |at: &E| match at {
                    E::Own(ty) | E::Position(E::Own(ty), _) => self.own(*ty),
                    at => self.initial(at),
                };
                let at: Vec<String> = at.iter().map(index).collect();
                let (base, at) = (self.operand(base), at.join(", "));
                if self.type_at(*ty).form == Form::Row {
                    format!("{base}[{at}]")
                } else {
                    format!("{base}({at})")
                }
            }
            E::Position(at, ty) => match self.type_at(*ty).form {
                Form::Local => {
                    let at = self.operand(at);
                    let parts: Vec<String> =
                        (0..self.type_at(*ty).len()).map(|axis| format!("{at}({axis})")).collect();
                    parts.join(", ")
                }
                _ => self.expression(at),
            },
            E::Own(ty) => format!("{}{{{{{}}}}}", self.type_at(*ty).name, self.own(*ty)),
            E::Extent(base, axis) => {
                format!("rust::extent({}, {})", self.expression(base), self.axis(axis))
            }
            E::Bits(to, a) => format!("detail::bits<{}>({})", self.type_at(*to).name, self.expression(a)),
            E::Field(base, name) => format!("{}.{}", self.operand(base), member(name)),
            E::Conditional(c, a, b) => {
                format!("{} ? {} : {}", self.operand(c), self.operand(a), self.operand(b))
            }
            E::Invoke(number, arguments) => {
                let name = self.functions.get(*number).map(String::as_str).unwrap_or_default();
                format!("{name}({})", self.list(arguments))
            }
            E::Record(ty, values, rest) => {
                let info = self.type_at(*ty);
                let names: Vec<&str> = match (info.form, info.records.last()) {
                    (Form::Complex, _) => vec!["re", "im"],
                    (_, record) => {
                        let fields = record.map(|record| record.fields.as_slice()).unwrap_or_default();
                        fields.iter().map(|field| field.name).collect()
                    }
                };
                let fields = names.into_iter().map(|name| {
                    let given = values.iter().find(|(field, _)| *field == name);
                    match (given, rest) {
                        (Some((_, value)), _) => self.expression(value),
                        (None, [rest, ..]) => format!("{}.{}", self.operand(rest), member(name)),
                        (None, []) => "a_field_is_missing".to_owned(), // rustc has said which
                    }
                });
                format!("{}{{{}}}", info.name, fields.collect::<Vec<_>>().join(", "))
            }
            E::Lambda(parameters, value) => {
                let parameters: Vec<String> = parameters
                    .iter()
                    .map(|(name, ty)| format!("const {} {}", self.type_at(*ty).name, variable(name)))
                    .collect();
                format!("[=]({}) {{ return {}; }}", parameters.join(", "), self.expression(value))
            }
            E::List(ty, values) => match self.type_at(*ty) {
                TypeInfo { form: Form::Local, name, .. } => format!("{name}{{{{{}}}}}", self.list(values)),
                TypeInfo { name, .. } => format!("{name}{{{}}}", self.list(values)),
            },
            E::Filled(ty, value) => {
                format!("rust::filled<{}>({})", self.type_at(*ty).name, self.expression(value))
            }
        }
    }

    /// An operator on two values.
    pub(super) fn arithmetic(&self, operator: &str, ty: usize, a: &E, b: &E) -> String {
        let info = self.type_at(ty);
        let name = &info.name;
        if is_plain(operator, info) {
            return format!("{} {operator} {}", self.operand(a), self.operand(b));
        }
        match (info.form, operator) {
            (Form::Float, _) => format!("rust::rem({}, {})", self.expression(a), self.expression(b)),
            (Form::Complex, _) => {
                format!("rust::{}({}, {})", function(operator), self.expression(a), self.expression(b))
            }
            (Form::Half, "%") => {
                format!("{name}(rust::rem((float){}, (float){}))", self.operand(a), self.operand(b))
            }
            (Form::Half, _) => {
                format!("{name}((float){} {operator} (float){})", self.operand(a), self.operand(b))
            }
            (_, "&" | "|" | "^") => format!("({name})({} {operator} {})", self.operand(a), self.operand(b)),
            _ => {
                let function = function(operator);
                format!("rust::{function}<{name}>({}, {})", self.expression(a), self.expression(b))
            }
        }
    }

    fn cast(&self, from: usize, to: usize, a: &E) -> String {
        let (from, to) = (self.type_at(from), self.type_at(to));
        if from.name == to.name {
            return self.operand(a);
        }
        if to.name == "u32" && self.most(a).is_some() {
            return self.narrow_operand(a);
        }
        match (from.form, to.form) {
            (Form::Float | Form::Half, Form::Wrapping | Form::Integer) => {
                format!("rust::cast<{}>({})", to.name, self.expression(a))
            }
            _ => format!("({}){}", to.name, self.operand(a)),
        }
    }
}

/// A number as its type writes it. An integer that is too large for its type wraps, where a lint allows it.
fn literal(digits: &str, name: &str, is_negative: bool) -> String {
    macro_rules! of_type {
        ($($type:ident)*) => {
            match name {
                "float" => digits.parse::<f32>().unwrap_or_default().literal(),
                "double" => digits.parse::<f64>().unwrap_or_default().literal(),
                $(stringify!($type) => {
                    // That of a `macro_rules` may have its sign.
                    let (digits, is_negative) =
                        digits.strip_prefix('-').map_or((digits, is_negative), |digits| (digits, !is_negative));
                    let value = digits.parse::<u128>().unwrap_or_default() as $type;
                    if is_negative { value.wrapping_neg().literal() } else { value.literal() }
                })*
                name => integer(digits, name),
            }
        };
    }
    of_type!(u8 i8 u16 i16 u32 i32 u64 i64)
}
