//! Methods of numbers and arrays, and functions of number types.

use super::{Lower, Order, Value, error, order_of};
use crate::names::VariableKind;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, ExprCall, ExprMethodCall, ExprPath, spanned::Spanned};

/// Methods of numbers that `arithmetic.hpp` has under the same name.
const NUMBERS: &[&str] = &[
    "sqrt",
    "cbrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "exp",
    "exp2",
    "exp_m1",
    "ln",
    "ln_1p",
    "log2",
    "log10",
    "floor",
    "ceil",
    "trunc",
    "round",
    "abs",
    "powf",
    "powi",
    "atan2",
    "hypot",
    "copysign",
    "min",
    "max",
    "clamp",
    "mul_add",
    "recip",
    "fract",
    "is_nan",
    "is_finite",
    "is_infinite",
    "to_bits",
    "to_f32",
    "to_f64",
    "wrapping_add",
    "wrapping_sub",
    "wrapping_mul",
    "wrapping_neg",
    "saturating_add",
    "saturating_sub",
    "rotate_left",
    "rotate_right",
    "count_ones",
    "leading_zeros",
    "trailing_zeros",
    "is_multiple_of",
];
const ATOMICS: &[&str] = &["atomic_add", "atomic_min", "atomic_max"];

impl Lower {
    pub(super) fn method(&mut self, call: &ExprMethodCall) -> syn::Result<Value> {
        let name = call.method.to_string();
        match (name.as_str(), call.args.len()) {
            ("len" | "is_empty", 0) | ("extent", 1) => return self.shape(call, &name),
            _ if ATOMICS.contains(&name.as_str()) => return self.atomic(call, &name),
            _ if NUMBERS.contains(&name.as_str()) => {}
            _ => return error(&call.method, format!("kernels do not know the method `{name}`")),
        }
        let mut values = vec![(self.expression(&call.receiver)?, call.receiver.span())];
        for argument in &call.args {
            values.push((self.expression(argument)?, argument.span()));
        }
        let before = self.in_order(&mut values);
        let order = order_of(&values);
        let (dot, method) = (&call.dot_token, &call.method);
        let Some(((receiver, _), arguments)) = values.split_first() else {
            return error(call, "no receiver");
        };
        let (host, seen) = (&receiver.host, &receiver.witness);
        let hosts = arguments.iter().map(|(value, _)| &value.host);
        let arguments_seen = arguments.iter().map(|(value, _)| &value.witness);
        let host = quote_spanned!(call.span()=> #host #dot #method(#(#hosts),*));
        let witness = quote_spanned!(call.span()=> #seen #dot #method(#(#arguments_seen),*));
        let (function, trees) = (format!("rust::{name}"), values.iter().map(|(value, _)| &value.tree));
        let tree = quote!(E::Call(#function, &[#(#trees),*]));
        Ok(Value { host, witness, before, tree, order })
    }

    /// `x.len()`, `x.is_empty()`, `x.extent(axis)`.
    fn shape(&mut self, call: &ExprMethodCall, name: &str) -> syn::Result<Value> {
        let receiver = match &*call.receiver {
            Expr::Path(path) => self.path(path),
            other => self.expression(other)?,
        };
        let (host, seen, tree) = (&receiver.host, &receiver.witness, &receiver.tree);
        let (dot, method) = (&call.dot_token, &call.method);
        let Some(axis) = call.args.first() else {
            let host = quote_spanned!(call.span()=> #host #dot #method());
            let witness = quote_spanned!(call.span()=> #seen #dot #method());
            let len = quote!(E::Call("rust::len", &[#tree]));
            let tree = if name == "len" { len } else { quote!(E::Compare("==", &#len, &E::Var("0"))) };
            return Ok(Value { host, witness, tree, order: Order::Fixed, ..receiver });
        };
        let axis = self.expression(axis)?;
        let (axis_host, axis_seen, axis_tree) = (&axis.host, &axis.witness, &axis.tree);
        let host = quote_spanned!(call.span()=> #host #dot #method(#axis_host));
        let witness = quote_spanned!(call.span()=> #seen #dot #method(#axis_seen));
        let tree = quote!(E::Extent(&#tree, &#axis_tree));
        let mut before = receiver.before;
        before.extend(axis.before);
        Ok(Value { host, witness, before, tree, order: axis.order })
    }

    /// `x.atomic_add(i, value)` and its like.
    fn atomic(&mut self, call: &ExprMethodCall, name: &str) -> syn::Result<Value> {
        let (Some(at), Some(value), 2) = (call.args.first(), call.args.get(1), call.args.len()) else {
            return error(call, format!("`{name}` takes an index and a value"));
        };
        if let Expr::Path(path) = &*call.receiver
            && let Some(variable) = path.path.get_ident().and_then(|name| self.names.find(&name.to_string()))
            && !matches!(variable.kind, VariableKind::ArrayParameter | VariableKind::Shared)
        {
            return error(&call.receiver, "only arrays that work-items share are changed atomically");
        }
        let index = syn::ExprIndex {
            attrs: Vec::new(),
            expr: call.receiver.clone(),
            bracket_token: syn::token::Bracket(at.span()),
            index: Box::new(at.clone()),
        };
        let (dot, method) = (&call.dot_token, &call.method);
        let mut values =
            vec![(self.element_place(&index)?, at.span()), (self.expression(value)?, value.span())];
        let before = self.in_order(&mut values);
        let [(place, _), (value, _)] = &values[..] else { return error(call, "no value") };
        let (receiver, host_at, seen_at) = (&call.receiver, &place.host, &place.witness);
        let (host_value, seen_value) = (&value.host, &value.witness);
        let host = quote_spanned!(call.span()=> #receiver #dot #method(#host_at, #host_value));
        let witness = quote_spanned!(call.span()=> #receiver #dot #method(#seen_at, #seen_value));
        let (function, place, value) = (name, &place.tree, &value.tree);
        let tree = quote!(E::Call(#function, &[#place, #value]));
        Ok(Value { host, witness, before, tree, order: Order::Acts })
    }

    /// `T::from(x)`, `f32::from_bits(x)`, `f16::from_f32(x)`.
    pub(super) fn function_of_type(&mut self, call: &ExprCall, path: &ExprPath) -> syn::Result<Value> {
        let name = path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let (Some(argument), 1) = (call.args.first(), call.args.len()) else {
            return error(&call.func, UNKNOWN);
        };
        if !["from", "from_bits", "from_f32", "from_f64"].contains(&name.as_str()) {
            return error(&call.func, UNKNOWN);
        }
        let value = self.expression(argument)?;
        let (from, seen) = self.seen(&value.witness, argument.span());
        let (host, function, tree) = (&value.host, path.to_token_stream(), &value.tree);
        let host = quote_spanned!(call.span()=> #function(#host));
        let (to, witness) = self.seen(&quote_spanned!(call.span()=> #function(#seen)), call.span());
        let tree = match name.as_str() {
            "from_bits" => quote!(E::Bits(#to, &#tree)),
            _ => quote!(E::Cast(#from, #to, &#tree)),
        };
        Ok(Value { host, witness, tree, ..value })
    }
}

const UNKNOWN: &str =
    "a kernel calls words of kernels, methods of numbers, `T::from(x)` and `T::from_bits(x)`";
