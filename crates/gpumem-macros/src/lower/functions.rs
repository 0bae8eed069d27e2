//! Calls of functions with `#[device]`, and functions that operations of waves and atomics take.

use super::{Lower, Order, Value, error, forms, function_witness, in_brackets, order_of};
use crate::{names::VariableKind, signature::Role};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, ExprCall, ExprClosure, ExprPath, Pat, spanned::Spanned};

const CLOSURE: &str = "the function of an operation is one expression, as `|a, b| a + b`: put longer ones into a function with `#[gpumem::device]`";

/// Words of CUDA and Numba that stand for one of kernels.
const OF_OTHERS: [(&str, &str); 6] = [
    ("syncthreads", "barrier(Local)"),
    ("__syncthreads", "barrier(Local)"),
    ("syncwarp", "wavebarrier()"),
    ("__syncwarp", "wavebarrier()"),
    ("threadfence", "memory_fence()"),
    ("__threadfence", "memory_fence()"),
];

impl Lower {
    /// Notes that work-items wait here, or share a group's memory: not allowed in a function that kernels call.
    pub(super) fn meet(&mut self, at: impl ToTokens) -> syn::Result<()> {
        if self.role == Role::Function {
            return error(
                at,
                "a function of kernels has no ids, barriers, waves and shared arrays: pass values to it",
            );
        }
        self.meets = true;
        Ok(())
    }

    /// Calls a function with `#[device]`.
    pub(super) fn function(&mut self, call: &ExprCall, path: &ExprPath) -> syn::Result<Value> {
        if let Some(name) = path.path.get_ident()
            && let Some((_, instead)) = OF_OTHERS.iter().find(|(word, _)| name == word)
        {
            return error(name, format!("kernels know no `{name}`: write `{instead}`"));
        }
        let (mut values, mut takes_array) = (Vec::new(), false);
        for argument in &call.args {
            let array = self.shared_array(argument);
            let array = array.filter(|variable| variable.kind != VariableKind::Shared);
            let value = match array {
                Some(variable) => {
                    takes_array = true;
                    let text = &variable.name;
                    Value::plain(argument.to_token_stream(), quote!(E::Var(#text)), Order::Fixed)
                }
                None => self.expression(argument)?,
            };
            values.push((value, argument.span()));
        }
        let before = self.in_order(&mut values);
        // It may write to an array parameter.
        let order = if takes_array { Order::Acts } else { order_of(&values) };
        self.called.extend(path.path.get_ident().cloned());
        self.functions.push(path.span());
        let number = self.functions.len() - 1;
        let instance = function_witness(number, path.span());
        let [hosts, seen, trees] = forms(&values);
        let (hosts, seen) = (in_brackets(call, quote!(#(#hosts),*)), in_brackets(call, quote!(#(#seen),*)));
        Ok(Value {
            host: quote_spanned!(path.span()=> __gpumem::Language::called(#path::__witness())#hosts),
            witness: quote_spanned!(path.span()=> __gpumem::Language::called_as(#path::__witness(), &#instance)#seen),
            tree: quote!(E::Invoke(#number, &[#(#trees),*])),
            before,
            order,
        })
    }

    /// The function that an operation takes: a closure of one expression, or the name of a function with `#[device]`.
    /// `values` is how many values it takes.
    pub(super) fn operation(&mut self, operation: &Expr, values: usize) -> syn::Result<Value> {
        let closure: ExprClosure = match operation {
            Expr::Closure(closure) => closure.clone(),
            Expr::Path(path) if values == 2 => {
                syn::parse_quote_spanned!(path.span()=> |__a, __b| #path(__a, __b))
            }
            Expr::Path(path) => syn::parse_quote_spanned!(path.span()=> |__a| #path(__a)),
            _ => return error(operation, CLOSURE),
        };
        if closure.inputs.len() != values || closure.capture.is_some() || closure.asyncness.is_some() {
            return error(operation, CLOSURE);
        }
        self.names.enter();
        let (mut looks, mut parameters) = (TokenStream::new(), Vec::new());
        for input in &closure.inputs {
            let Pat::Ident(name) = input else { return error(input, CLOSURE) };
            let (number, look) = self.look_at(&name.ident);
            let text = self.names.declare(&name.ident, VariableKind::Fixed, number);
            looks.extend(look);
            parameters.push(quote!((#text, #number)));
        }
        let value = self.expression(&closure.body)?;
        self.names.leave();
        if !value.before.is_empty() || value.order == Order::Acts {
            return error(&closure.body, CLOSURE);
        }
        let (inputs, host, seen, tree) = (&closure.inputs, &value.host, &value.witness, &value.tree);
        Ok(Value {
            // Of a path the same call as elsewhere: a function beside the type may have its name from somewhere else.
            host: quote_spanned!(operation.span()=> |#inputs| #host),
            witness: quote_spanned!(operation.span()=> |#inputs| { #looks #seen }),
            before: Vec::new(),
            tree: quote!(E::Lambda(&[#(#parameters),*], &#tree)),
            order: Order::Fixed,
        })
    }
}
