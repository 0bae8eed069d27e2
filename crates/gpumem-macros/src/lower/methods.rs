//! Methods of numbers and arrays, and functions of number types.

use super::{Lower, Order, Value, error, forms, local, order_of};
use crate::number_methods::is_method_of_numbers;
use proc_macro2::{Ident, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::{Expr, ExprCall, ExprMethodCall, ExprPath, spanned::Spanned};

/// Atomic changes of an element, and how many values they take.
pub(super) const ATOMICS: &[(&str, usize)] = &[
    ("atomic_add", 1),
    ("atomic_min", 1),
    ("atomic_max", 1),
    ("atomic_exchange", 1),
    ("atomic_compare_exchange", 2),
    ("atomic_update", 1),
];

impl Lower {
    pub(super) fn method(&mut self, call: &ExprMethodCall) -> syn::Result<Value> {
        let name = call.method.to_string();
        match (name.as_str(), call.args.len()) {
            ("len" | "is_empty", 0) | ("extent", 1) => return self.shape(call, &name),
            _ if name.starts_with("atomic_") => return self.atomic(call, &name),
            _ if is_method_of_numbers(&name) => {}
            // What rustc advises where types differ.
            ("into" | "try_into" | "unwrap", 0) => {
                return error(&call.method, "kernels convert numbers by `as`: `x as u32`");
            }
            _ => return error(&call.method, format!("kernels do not know the method `{name}`")),
        }
        // An argument needs no parentheses, of which rustc would warn.
        let receiver = match &*call.receiver {
            Expr::Paren(inner) => &inner.expr,
            receiver => receiver,
        };
        let mut values = vec![(self.expression(receiver)?, call.receiver.span())];
        values.extend(self.expressions(&call.args)?);
        let before = self.in_order(&mut values);
        let order = order_of(&values);
        let (dot, method) = (&call.dot_token, &call.method);
        let Some(((receiver, _), arguments)) = values.split_first() else {
            return error(call, "no receiver");
        };
        let (host, seen) = (&receiver.host, &receiver.witness);
        let [hosts, arguments_seen, _] = forms(arguments);
        // By a path, so that the method is that of the C++, whatever traits the user has. Which of two zeros a float's own methods
        // return is open.
        let ordered = match (name.as_str(), arguments.len()) {
            ("min", 1) => Some(quote_spanned!(method.span()=> __gpumem::Ordered::min_of)),
            ("max", 1) => Some(quote_spanned!(method.span()=> __gpumem::Ordered::max_of)),
            _ => None,
        };
        let known = known(method);
        let known = quote_spanned!(method.span()=> __gpumem::Methods::#known);
        let (host, witness) = match ordered {
            Some(function) => (
                quote_spanned!(call.span()=> #function(#host, #(#hosts),*)),
                quote_spanned!(call.span()=> #function(#seen, #(#arguments_seen),*)),
            ),
            // rustc says as of a method what a number does not have. The type is that of the host: another trait may have a
            // method of this name.
            None if arguments.is_empty() => {
                let of = Ident::new("__of", local(call.span()));
                (
                    quote_spanned!(call.span()=> #known(#host)),
                    quote_spanned!(call.span()=> (match #seen {
                        #of => {
                            let _ = #of #dot #method();
                            #known(#of)
                        }
                    })),
                )
            }
            None => (
                quote_spanned!(call.span()=> #known(#host, #(#hosts),*)),
                quote_spanned!(call.span()=> #known(#seen, #(#arguments_seen),*)),
            ),
        };
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
        // By a path, as the methods of numbers.
        let Some(axis) = call.args.first() else {
            let is = |array| match name {
                "len" => quote_spanned!(call.span()=> __gpumem::Row::len_of(&#array)),
                _ => quote_spanned!(call.span()=> __gpumem::Row::is_empty_of(&#array)),
            };
            let len = quote!(E::Call("rust::len", &[#tree]));
            let tree = if name == "len" { len } else { quote!(E::Compare("==", &#len, &E::Text("0"))) };
            return Ok(Value { host: is(host), witness: is(seen), tree, ..receiver });
        };
        let axis = self.expression(axis)?;
        let (axis_host, axis_seen, axis_tree) = (&axis.host, &axis.witness, &axis.tree);
        let extent = |array, axis| quote_spanned!(call.span()=> __gpumem::Grid::extent_of(&#array, #axis));
        let (host, witness) = (extent(host, axis_host), extent(seen, axis_seen));
        let tree = quote!(E::Extent(&#tree, &#axis_tree));
        let order = if receiver.order > axis.order { receiver.order } else { axis.order };
        let mut before = receiver.before;
        before.extend(axis.before);
        Ok(Value { host, witness, before, tree, order })
    }

    /// `x.atomic_add(i, value)` and its like.
    fn atomic(&mut self, call: &ExprMethodCall, name: &str) -> syn::Result<Value> {
        let Some((_, count)) = ATOMICS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<String> = ATOMICS.iter().map(|(known, _)| format!("`{known}`")).collect();
            return error(&call.method, format!("elements are changed atomically by {}", known.join(", ")));
        };
        let arguments: Vec<&Expr> = call.args.iter().collect();
        let Some((at, given)) = arguments.split_first().filter(|(_, given)| given.len() == *count) else {
            let takes = match name {
                "atomic_update" => "an index and a function, as `|old| old ^ 1`",
                "atomic_compare_exchange" => "an index, the value that is expected and the new one",
                _ => "an index and a value",
            };
            return error(call, format!("`{name}` takes {takes}"));
        };
        if let Expr::Path(path) = &*call.receiver
            && path.path.get_ident().is_some_and(|name| self.names.find(name).is_some())
            && self.shared_array(&call.receiver).is_none()
        {
            return error(&call.receiver, "only arrays that work-items share are changed atomically");
        }
        let method = &call.method;
        let array = self.array(&call.receiver)?;
        // The index and the values in the order in which they are written; the place is made of them at the end.
        let (mut values, write) = self.position(at)?;
        let count_of_indices = values.len();
        for value in given {
            let lowered = match name {
                "atomic_update" => self.operation(value, 1)?,
                _ => self.expression(value)?,
            };
            values.push((lowered, value.span()));
        }
        let mut before = array.before;
        before.extend(self.in_order(&mut values));
        let (indices, given) = values.split_at(count_of_indices);
        let at = write(indices);
        let [hosts, seen, trees] = forms(given);
        let (at_host, at_seen) = (&at.host, &at.witness);
        // By a path: an array without the method may have one of the user's.
        let function = quote_spanned!(method.span()=> __gpumem::Change::#method);
        let (array_host, array_seen) = (&array.host, &array.witness);
        let host = quote_spanned!(call.span()=> #function(#array_host, #at_host, #(#hosts),*));
        let witness = quote_spanned!(call.span()=> #function(#array_seen, #at_seen, #(#seen),*));
        let (array_tree, ty, at_trees) = (&array.tree, array.ty, &at.trees);
        let tree = quote!(E::Call(#name, &[E::Index(&#array_tree, #ty, &[#(#at_trees),*]), #(#trees),*]));
        Ok(Value { host, witness, before, tree, order: Order::Acts })
    }

    /// `T::from(x)`, `f32::from_bits(x)`, `f16::from_f32(x)`, `Complex::new(x, y)`.
    pub(super) fn function_of_type(&mut self, call: &ExprCall, path: &ExprPath) -> syn::Result<Value> {
        let name = path.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        if name == "new" {
            return self.new_complex(call, path);
        }
        let (Some(argument), 1) = (call.args.first(), call.args.len()) else {
            return error(call, format!("`{name}` takes one value"));
        };
        let value = self.expression(argument)?;
        // Both are numbers, between which no user can write a `From`.
        let given = convertible(&value.witness, argument.span());
        let (from, seen) = self.seen(&given, argument.span());
        let (ty, last) = type_of(path)?;
        // By the trait, whatever functions of this name the type has from the user.
        let function = match name.as_str() {
            "from" => quote_spanned!(path.span()=> __gpumem::Language::from::<#ty, _>),
            _ => {
                let known = known(&last);
                quote_spanned!(path.span()=> <#ty as __gpumem::Methods>::#known)
            }
        };
        let (host, tree) = (&value.host, &value.tree);
        let host = quote_spanned!(call.span()=> #function(#host));
        let made = convertible(&quote_spanned!(call.span()=> #function(#seen)), call.span());
        let (to, witness) = self.seen(&made, call.span());
        let tree = match name.as_str() {
            "from_bits" => quote!(E::Bits(#to, &#tree)),
            _ => quote!(E::Cast(#from, #to, &#tree)),
        };
        Ok(Value { host, witness, tree, ..value })
    }

    fn new_complex(&mut self, call: &ExprCall, path: &ExprPath) -> syn::Result<Value> {
        let (ty, _) = type_of(path)?;
        let mut values = self.expressions(&call.args)?;
        let before = self.in_order(&mut values);
        let order = order_of(&values);
        let trees = values.iter().map(|(value, _)| &value.tree);
        let tree = quote!(&[#(#trees),*]);
        // By its parts: the path may lead to a function of this name that is the user's.
        let made = |re: &TokenStream, im: &TokenStream| quote_spanned!(call.span()=> __gpumem::Language::new_complex(#ty { re: #re, im: #im }));
        let [(re, _), (im, _)] = values.as_slice() else {
            return error(call, "`new` makes a complex number of two parts");
        };
        let (host, made) = (made(&re.host, &im.host), made(&re.witness, &im.witness));
        let (number, witness) = self.seen(&made, call.span());
        Ok(Value { host, witness, before, tree: quote!(E::List(#number, #tree)), order })
    }
}

/// A number that is made of another, or of which another is made, in the copy for rustc.
fn convertible(seen: &TokenStream, span: Span) -> TokenStream {
    quote_spanned!(span=> (__gpumem::Language::convertible(#seen)))
}

/// The name of a method in the expansion's trait.
fn known(method: &syn::Ident) -> syn::Ident {
    quote::format_ident!("{method}_of", span = method.span())
}

/// The type before the last part of a path, and that part.
fn type_of(path: &ExprPath) -> syn::Result<(syn::TypePath, syn::Ident)> {
    let mut ty = path.path.clone();
    let Some(last) = ty.segments.pop().map(|last| last.into_value().ident) else {
        return error(path, "a function of a type is named as `f64::from`");
    };
    ty.segments.pop_punct();
    match (&path.qself, ty.segments.is_empty()) {
        (None, false) => Ok((syn::TypePath { qself: None, path: ty }, last)),
        _ => error(path, "a function of a type is named as `f64::from`"),
    }
}

/// Whether a path names a function of a number's type, by the last part of its name.
pub(super) fn is_of_type(path: &ExprPath) -> bool {
    let segments = &path.path.segments;
    let last = segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
    (segments.len() > 1 || path.qself.is_some())
        && ["from", "from_bits", "from_f32", "from_f64", "new"].contains(&last.as_str())
}
