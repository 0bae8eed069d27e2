//! Records: `Point { x, y }`, and with the rest of another one.

use super::{Lower, Value, error, order_of};
use crate::names::member_name;
use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{ExprStruct, spanned::Spanned};

impl Lower {
    pub(super) fn record(&mut self, record: &ExprStruct) -> syn::Result<Value> {
        let mut values = self.expressions(record.fields.iter().map(|field| &field.expr))?;
        if let Some(rest) = &record.rest {
            let mut value = self.expression(rest)?;
            let mut before = Vec::new();
            self.move_to_variable(&mut value, rest.span(), &mut before);
            value.before = before;
            values.push((value, rest.span()));
        } else if let Some(dots) = &record.dot2_token {
            return error(dots, "the rest of a record is that of another: `..other`");
        }
        let before = self.in_order(&mut values);
        let order = order_of(&values);
        let (path, members) = (&record.path, record.fields.iter().map(|field| &field.member));
        let members: Vec<_> = members.collect();
        let (given, rest) = values.split_at(members.len());
        let write = |form: fn(&Value) -> &TokenStream, is_host: bool| {
            let fields = record.fields.iter().zip(given).map(|(field, (value, _))| {
                let (member, colon, tokens) = (&field.member, &field.colon_token, form(value));
                // As it was written: `Point { x }` is of the user's own words.
                if is_host && colon.is_none() { quote!(#member) } else { quote!(#member: #tokens) }
            });
            let rest = rest.iter().map(|(value, _)| form(value));
            quote_spanned!(record.span()=> #path { #(#fields,)* #(..#rest)* })
        };
        let (host, seen) = (write(|value| &value.host, true), write(|value| &value.witness, false));
        // What has fields in Rust may be a number in C++: `Mode::B {}` of an enum.
        let seen = quote_spanned!(path.span()=> __gpumem::Language::record(#seen));
        let (number, witness) = self.seen(&seen, record.span());
        let fields = members.iter().zip(given).map(|(member, (value, _))| {
            let (name, tree) = (member_name(member), &value.tree);
            quote!((#name, #tree))
        });
        let rest = rest.iter().map(|(value, _)| &value.tree);
        let tree = quote!(E::Record(#number, &[#(#fields),*], &[#(#rest)*]));
        Ok(Value { host, witness, before, tree, order })
    }
}
