//! The parameters of a kernel, read from its source.
//!
//! A portable kernel says everything that a launch must know: `GPUMEM_KERNEL saxpy(slice<const float> x, slice<float>
//! y, float a)`. The parameters read here go into the declaration, and the device's compiler checks the declaration
//! against the source: a mistake made here is an error of the compilation, never a wrong launch.

use gpumem::{ElementKind, ElementType, kernel::ParameterInfo};

/// A parameter.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) element: ElementType,
    pub(crate) form: Form,
    /// The element in device code.
    device: &'static str,
}

/// The kind of a parameter's argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Value,
    /// A packed array of any rank.
    Slice {
        write: bool,
    },
    /// An array of any strides.
    View {
        write: bool,
        rank: usize,
    },
}

impl Form {
    /// Whether the kernel may write its argument.
    pub(crate) fn is_written(self) -> bool {
        matches!(self, Self::Slice { write: true } | Self::View { write: true, .. })
    }
}

/// Element types by their names in device code, and by their full ones.
const ELEMENTS: [(&str, &str, ElementKind, usize); 19] = [
    ("bool", "bool", ElementKind::Bool, 1),
    ("i8", "gpumem::i8", ElementKind::Int, 1),
    ("i16", "gpumem::i16", ElementKind::Int, 2),
    ("i32", "gpumem::i32", ElementKind::Int, 4),
    ("int", "gpumem::i32", ElementKind::Int, 4),
    ("i64", "gpumem::i64", ElementKind::Int, 8),
    ("long long", "gpumem::i64", ElementKind::Int, 8),
    ("u8", "gpumem::u8", ElementKind::UInt, 1),
    ("u16", "gpumem::u16", ElementKind::UInt, 2),
    ("u32", "gpumem::u32", ElementKind::UInt, 4),
    ("unsigned int", "gpumem::u32", ElementKind::UInt, 4),
    ("u64", "gpumem::u64", ElementKind::UInt, 8),
    ("unsigned long long", "gpumem::u64", ElementKind::UInt, 8),
    ("f16", "gpumem::f16", ElementKind::Float, 2),
    ("bf16", "gpumem::bf16", ElementKind::BFloat, 2),
    ("float", "float", ElementKind::Float, 4),
    ("double", "double", ElementKind::Float, 8),
    ("complex<float>", "gpumem::complex<float>", ElementKind::Complex, 8),
    ("complex<double>", "gpumem::complex<double>", ElementKind::Complex, 16),
];

/// The most axes that a `view` may have here.
const MOST_AXES: usize = 16;

impl Parameter {
    fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        // By the text that is left: the last letter before the name may take several bytes.
        let kind = text.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
        let name = text.strip_prefix(kind).unwrap_or_default();
        let kind = squeeze(kind);
        if kind.is_empty() || name.is_empty() {
            return Err(format!("the parameter `{text}` is not a type and a name"));
        }
        let inside = |outer: &str| {
            let rest = kind.strip_prefix(outer)?.trim_start().strip_prefix('<')?;
            Some(rest.trim_end().strip_suffix('>')?.trim())
        };
        let (form, element) = if let Some(element) = inside("slice") {
            let (write, element) = constness(element);
            (Form::Slice { write }, element)
        } else if let Some(element) = inside("view") {
            let (element, rank) = element.rsplit_once(',').ok_or("a view has an element type and a rank")?;
            let rank: usize = rank.trim().parse().map_err(|_| format!("`{rank}` is no rank of a view"))?;
            if rank > MOST_AXES {
                return Err(format!("a view has at most {MOST_AXES} axes"));
            }
            let (write, element) = constness(element.trim());
            (Form::View { write, rank }, element)
        } else {
            (Form::Value, constness(&kind).1)
        };
        let known = ELEMENTS.iter().find(|(short, ..)| *short == element);
        let (_, device, kind, bytes) = known.ok_or_else(|| {
            let names: Vec<_> = ELEMENTS.iter().map(|(short, ..)| *short).collect();
            format!("the type `{element}` of `{name}` is not known here: there are {}", names.join(", "))
        })?;
        Ok(Self { name: name.to_owned(), element: ElementType::new(*kind, *bytes), form, device })
    }

    /// The parameter as the library declares it.
    pub(crate) fn info(&self) -> ParameterInfo {
        let (device, bytes) = (self.device, self.element.bytes);
        let constant = |write: bool| if write { "" } else { "const " };
        let align = if self.element.kind == ElementKind::Complex { bytes / 2 } else { bytes };
        let (size, align, device_type) = match self.form {
            Form::Value => (bytes, align, device.to_owned()),
            Form::Slice { write } => (16, 8, format!("gpumem::slice<{}{device}>", constant(write))),
            Form::View { write, rank } => {
                (8 + 16 * rank, 8, format!("gpumem::view<{}{device}, {rank}>", constant(write)))
            }
        };
        let is_memory = self.form != Form::Value;
        let device_type = Some(device_type);
        ParameterInfo { size, align, device_type, is_memory, is_constant: false, reach: |_| None }
    }
}

/// Tells whether the parameter may be written, and returns the rest after the word.
fn constness(text: &str) -> (bool, &str) {
    match text.strip_prefix("const ") {
        Some(rest) => (false, rest.trim()),
        None => (true, text.trim()),
    }
}

/// One space between words, none elsewhere, and without the name of the namespace.
fn squeeze(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let mut text = words.join(" ").replace("gpumem::", "");
    for mark in ["<", ">", ","] {
        text = text.replace(&format!(" {mark}"), mark).replace(&format!("{mark} "), mark);
    }
    text.trim().to_owned()
}

/// The source without its comments.
fn without_comments(source: &str) -> String {
    let (mut out, mut rest) = (String::new(), source);
    while let Some(at) = rest.find('/') {
        let (end, skip) = match rest.as_bytes().get(at + 1) {
            Some(b'/') => ("\n", 0),
            Some(b'*') => ("*/", 2),
            _ => {
                let (before, after) = rest.split_at(at + 1);
                out.push_str(before);
                rest = after;
                continue;
            }
        };
        out.push_str(&rest[..at]);
        out.push(' ');
        rest = rest[at + 2..].find(end).map_or("", |found| &rest[at + 2 + found + skip..]);
    }
    out + rest
}

/// The kernels of a source, with their parameters.
pub(crate) fn kernels(source: &str) -> Result<Vec<(String, Vec<Parameter>)>, String> {
    let (text, mut found) = (without_comments(source), Vec::new());
    for part in text.split("GPUMEM_KERNEL").skip(1) {
        let (name, rest) = part.split_once('(').ok_or("a kernel has a name and parameters")?;
        let name = name.trim();
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return Err(format!("`{name}` is no name of a kernel"));
        }
        let list = rest.split_once(')').ok_or_else(|| format!("the parameters of {name} do not end"))?.0;
        let parameters = split(list).into_iter().map(Parameter::read).collect::<Result<_, _>>();
        found.push((name.to_owned(), parameters.map_err(|why| format!("{name}: {why}"))?));
    }
    Ok(found)
}

/// Splits at the commas outside angle brackets.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0i32, 0);
    for (at, letter) in list.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !list[start..].trim().is_empty() || !parts.is_empty() {
        parts.push(&list[start..]);
    }
    parts
}
