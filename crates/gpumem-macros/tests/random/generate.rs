//! Random kernels: loops, branches, barriers, operations of waves, exits, values kept across barriers, hidden names. Some are
//! hostile: a macro writes them with names of its caller beside its own of the same letters, labels among them, with constants in
//! patterns, and beside a trait of the user's with methods that kernels know.
//!
//! None of them races, so each has one result, whatever the order of its work-items. Some part at a barrier, which is a fault.

use std::{fmt::Write, ops::Range, path::Path};

/// Work-items of a group: a whole wave of 32, and a part of one.
const GROUP: usize = 40;

/// Numbers that look random: the same for the same seed, on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// A variable of the kernel.
#[derive(Clone, Copy)]
struct Variable {
    name: &'static str,
    mutable: bool,
    /// All work-items of a group have the same value.
    common: bool,
}

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "float", "sum"];
/// Names of a macro, and of its caller.
const HOSTILE: [&str; 8] = ["a", "$a", "b", "$b", "c", "$c", "float", "$a"];
const LABELS: [&str; 3] = ["'a", "$l", ""];

struct Writer {
    dice: Dice,
    text: String,
    depth: usize,
    scope: Vec<Variable>,
    /// Work-items of the group do not part here.
    together: bool,
    /// Enclosing loops whose work-items do not diverge.
    loops: usize,
    /// Counters that must come to their end.
    reserved: usize,
    statements: usize,
    hostile: bool,
    /// The labels of the loops that may be left.
    labels: Vec<&'static str>,
}

fn is_hostile(seed: u64) -> bool {
    seed % 5 == 4
}

/// The source of a program that runs the kernels of some seeds. `simulator` is where AMD's simulated GPU is.
pub(crate) fn program(seeds: Range<u64>, simulator: Option<&Path>) -> String {
    let kernels: String = seeds.clone().map(kernel).collect();
    let names = |hostile: bool| -> String {
        let seeds = seeds.clone().filter(|seed| is_hostile(*seed) == hostile);
        seeds.map(|seed| format!("        k{seed}(),\n")).collect()
    };
    let (plain, hostile) = (names(false), names(true));
    let run = include_str!("run.rs");
    format!(
        "#![allow(warnings)]\n{run}\nconst GROUP: usize = {GROUP};\nconst SIMULATOR: Option<&str> = {simulator:?};\n{kernels}\n\
        fn all() -> Vec<KernelDef<(SliceMut<i64>,)>> {{\n    vec![\n{plain}    ]\n}}\n\
        fn hostile() -> Vec<KernelDef<(SliceMut<i64>,)>> {{\n    vec![\n{hostile}    ]\n}}\n"
    )
}

/// The source of a kernel.
fn kernel(seed: u64) -> String {
    let mut writer = Writer {
        dice: Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        text: String::new(),
        depth: 1,
        scope: Vec::new(),
        together: true,
        loops: 0,
        reserved: 0,
        statements: 0,
        hostile: is_hostile(seed),
        labels: Vec::new(),
    };
    writer.dice.below(2);
    writer.line(format!("let tile = shared::<i64>([{GROUP}]);"));
    writer.line("let (i, local, n) = (global_id(0), local_id(0), global_id(0) as i64);");
    writer.line("let g = group_id(0) as i64;");
    writer.line("tile[local] = n.wrapping_mul(3);");
    writer.scope.push(Variable { name: "n", mutable: false, common: false });
    writer.scope.push(Variable { name: "g", mutable: false, common: true });
    let count = 5 + writer.dice.below(6);
    for _ in 0..count {
        writer.statement();
    }
    if writer.dice.one_in(4) {
        let condition = writer.condition(false);
        writer.line(format!("if {condition} {{"));
        writer.line("    return;");
        writer.line("}");
    }
    let mut all = "tile[local]".to_owned();
    for variable in writer.scope.clone() {
        all = format!("{all}.wrapping_mul(31).wrapping_add({})", variable.name);
    }
    writer.line(format!("out[i] = {all};"));
    let body = writer.text;
    let text = format!("\n#[gpumem::kernel(unsafe)]\nfn k{seed}(out: SliceMut<i64>) {{\n{body}}}\n");
    if !is_hostile(seed) {
        return text;
    }
    format!(
        "\nmacro_rules! m{seed} {{\n($a:ident $b:ident $c:ident $l:tt) => {{{text}}};\n}}\nm{seed}!(a b c 'a);\n"
    )
}

impl Writer {
    fn line(&mut self, line: impl AsRef<str>) {
        let _ = writeln!(self.text, "{}{}", "    ".repeat(self.depth), line.as_ref());
    }

    /// A variable, or a number.
    fn leaf(&mut self, common: bool) -> String {
        let fitting: Vec<Variable> =
            self.scope.iter().copied().filter(|variable| variable.common || !common).collect();
        match self.dice.below(4) {
            0 => format!("{}i64", self.dice.below(9)),
            1 if !common => "tile[local]".to_owned(),
            _ => fitting[self.dice.below(fitting.len() as u64) as usize].name.to_owned(),
        }
    }

    fn value(&mut self, common: bool) -> String {
        let a = self.leaf(common);
        let b = self.leaf(common);
        if self.hostile && self.dice.one_in(3) {
            return self.hostile_value(&a, &b, common);
        }
        match self.dice.below(8) {
            0 => a,
            1 => format!("{a}.wrapping_add({b})"),
            2 => format!("{a}.wrapping_sub({b})"),
            3 => format!("{a}.wrapping_mul({b})"),
            4 => format!("({a} ^ {b})"),
            5 => format!("{a}.max({b})"),
            6 if !common => format!("if {a} > {b} {{ {b} }} else {{ {a} & 1023 }}"),
            _ => format!("({a} & {b})"),
        }
    }

    /// A method that a trait of the user's has too, or a `match` with constants and names.
    fn hostile_value(&mut self, a: &str, b: &str, common: bool) -> String {
        let name = self.name();
        match self.dice.below(4) {
            _ if common => format!("{a}.plus({b})"),
            0 => format!("{a}.plus({b}).signum()"),
            1 => format!("match {a} & 3 {{ LEAST => {b}, {name} if {name} > 2 => {name} ^ {b}, _ => {a} }}"),
            2 => {
                format!("match {a} & 7 {{ LEAST | MOST => {a}, {name} => {name}.wrapping_mul(5).plus({b}) }}")
            }
            _ => format!("{{ let {name} = {a} & 255; {name}.wrapping_mul({name}) ^ ({b} & 255) }}"),
        }
    }

    /// The label of a loop, with the mark after it.
    fn label(&mut self) -> (&'static str, String) {
        let label = if self.hostile { LABELS[self.dice.below(3) as usize] } else { "" };
        (label, if label.is_empty() { String::new() } else { format!("{label}: ") })
    }

    fn condition(&mut self, common: bool) -> String {
        let (a, b) = (self.leaf(common), self.leaf(common));
        let (most, rest) = (2 + self.dice.below(3), self.dice.below(2));
        match self.dice.below(2) {
            0 => format!("({a} ^ {b}) & 3 == {}", most - 2),
            _ => format!("{a}.wrapping_add({b}) & {most} > {rest}"),
        }
    }

    /// A condition around barriers. Now and then work-items part there: then both bodies fault, or find that they do not.
    fn common_condition(&mut self) -> String {
        let common = !self.dice.one_in(12);
        self.condition(common)
    }

    /// A name that nothing needs any more, or one that is hidden.
    fn name(&mut self) -> &'static str {
        let names = if self.hostile { HOSTILE } else { NAMES };
        names[self.dice.below(names.len() as u64) as usize]
    }

    fn declare(&mut self, name: &'static str, mutable: bool, common: bool) {
        self.scope.retain(|variable| variable.name != name);
        self.scope.push(Variable { name, mutable, common });
    }

    fn is_free(&self, name: &str) -> bool {
        self.scope.iter().all(|variable| variable.name != name)
    }

    /// The body of a branch, or of a loop with this label.
    fn block(&mut self, together: bool, around: Option<&'static str>) {
        let labels = self.labels.clone();
        if !together {
            self.labels.clear();
        } else if let Some(label) = around {
            self.labels.push(label);
        }
        self.statements_of_block(together, around.is_some());
        self.labels = labels;
    }

    fn statements_of_block(&mut self, together: bool, in_loop: bool) {
        let (scope, was_together, loops) = (self.scope.clone(), self.together, self.loops);
        self.together = together;
        self.loops = if !together { 0 } else { loops + usize::from(in_loop) };
        self.depth += 1;
        for _ in 0..1 + self.dice.below(4) {
            self.statement();
        }
        self.depth -= 1;
        (self.scope, self.together, self.loops) = (scope, was_together, loops);
        if !together {
            return;
        }
        // A variable that a branch or a loop has changed may differ from then on: the generator does not track it.
        for variable in &mut self.scope {
            variable.common &= !variable.mutable;
        }
    }

    fn statement(&mut self) {
        self.statements += 1;
        let deep = self.depth > 3 || self.statements > 40;
        match self.dice.below(15) {
            0 | 1 => {
                let (common, mutable) = (self.dice.one_in(2), self.dice.one_in(2));
                // A common variable that is changed where work-items part is common no more.
                let common = common && self.together && !mutable;
                let (value, name) = (self.value(common), self.name());
                self.line(format!("let {}{name} = {value};", if mutable { "mut " } else { "" }));
                self.declare(name, mutable, common);
            }
            2 | 3 => self.assign(),
            4 => {
                let (name, other) = (self.name(), self.name());
                if name != other {
                    let (a, b) = (self.value(false), self.value(false));
                    self.line(format!("let ({name}, mut {other}) = ({a}, {b});"));
                    self.declare(name, false, false);
                    self.declare(other, true, false);
                }
            }
            5 => {
                let value = self.value(false);
                self.line(format!("tile[local] = {value};"));
            }
            6 | 7 if self.together => self.exchange(),
            8 | 9 if self.together => self.wave(),
            10 if !deep => {
                let common = self.together && !self.dice.one_in(3);
                let condition = if common { self.common_condition() } else { self.condition(false) };
                self.line(format!("if {condition} {{"));
                self.block(common, None);
                if self.dice.one_in(2) {
                    self.line("} else {");
                    self.block(common, None);
                }
                self.line("}");
            }
            11 if !deep => {
                let together = self.together && !self.dice.one_in(3);
                let end =
                    if together { format!("{}i64", 1 + self.dice.below(3)) } else { "(n & 3)".to_owned() };
                let reversed = if self.dice.one_in(3) { ".rev()" } else { "" };
                let range =
                    if reversed.is_empty() { format!("0..{end}") } else { format!("(0..{end}){reversed}") };
                let (label, mark) = self.label();
                self.line(format!("{mark}for k in {range} {{"));
                let is_new = self.is_free("k");
                if is_new {
                    self.scope.push(Variable { name: "k", mutable: false, common: together });
                }
                self.block(together, Some(label));
                self.scope.retain(|variable| variable.name != "k" || !is_new);
                self.line("}");
            }
            12 if !deep => {
                let counter = format!("turns{}", self.reserved);
                self.reserved += 1;
                let together = self.together && !self.dice.one_in(4);
                self.line(format!("let mut {counter} = 0;"));
                let (label, mark) = self.label();
                self.line(format!("{mark}while {counter} < {} {{", 1 + self.dice.0 % 3));
                self.depth += 1;
                self.line(format!("{counter} += 1;"));
                self.depth -= 1;
                self.block(together, Some(label));
                self.line("}");
            }
            13 if self.loops > 0 => {
                let condition = self.common_condition();
                let word = if self.dice.one_in(2) { "break" } else { "continue" };
                self.line(format!("if {condition} {{"));
                let labels: Vec<&str> =
                    self.labels.iter().copied().filter(|label| !label.is_empty()).collect();
                let label = match labels.len() {
                    0 => "",
                    count => labels[self.dice.below(count as u64) as usize],
                };
                self.line(format!("    {word} {label};"));
                self.line("}");
            }
            14 if self.dice.one_in(6) && self.together => {
                let condition = self.common_condition();
                self.line(format!("if {condition} {{"));
                self.line("    out[i] = tile[local];");
                self.line("    return;");
                self.line("}");
            }
            _ => self.assign(),
        }
    }

    fn assign(&mut self) {
        let fitting: Vec<usize> = (0..self.scope.len()).filter(|index| self.scope[*index].mutable).collect();
        let Some(index) = fitting.get(self.dice.below(8) as usize).copied() else { return };
        let (value, name) = (self.value(false), self.scope[index].name);
        self.scope[index].common = false;
        let operator = ["=", "^=", "|=", "="][self.dice.below(4) as usize];
        self.line(format!("{name} {operator} {value};"));
    }

    /// Every work-item reads the element of another one, between two barriers.
    fn exchange(&mut self) {
        let (name, distance) = (self.name(), self.dice.below(GROUP as u64));
        let scope = ["Local", "Both"][self.dice.below(2) as usize];
        self.line(format!("barrier({scope});"));
        self.line(format!("let {name} = tile[(local + {distance}) % {GROUP}];"));
        self.line("barrier(Local);");
        self.declare(name, false, false);
    }

    fn wave(&mut self) {
        let (value, lane, name) = (self.value(false), self.dice.below(33), self.name());
        let operation = match self.dice.below(10) {
            0 => format!("wave_sum({value})"),
            1 => format!("wave_min({value})"),
            2 => format!("wave_max({value})"),
            3 => format!("wave_scan({value})"),
            4 => format!("shuffle({value}, {lane})"),
            5 => format!("shuffle_up({value}, {lane})"),
            6 => format!("shuffle_down({value}, local & 7)"),
            7 => format!("shuffle_xor({value}, {lane})"),
            8 => format!("wave_reduce({value}, |x, y| x.wrapping_mul(3) ^ y)"),
            _ => {
                let condition = self.condition(false);
                let operation = ["wave_ballot", "wave_any", "wave_all"][self.dice.below(3) as usize];
                self.line(format!("let votes = {operation}({condition});"));
                self.line(format!("let {name} = votes as i64;"));
                return self.declare(name, false, false);
            }
        };
        self.line(format!("let {name} = {operation};"));
        self.declare(name, false, false);
    }
}
