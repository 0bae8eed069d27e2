//! The phases of a body that is split at its barriers, as the host runs them.

use super::{Code, Lower, error, inline, item, phases};
use crate::{
    names::VariableKind,
    split::{self, Operation, Phase, Split, private},
};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Lifetime, LitInt};

/// The loop over the groups that a thread runs.
fn group_label() -> Lifetime {
    Lifetime::new("'__group", Span::mixed_site())
}

impl Lower {
    /// The body that runs all groups, one after the other. `unpacked` declares the parameters.
    pub(crate) fn split(&mut self, split: Split, unpacked: &TokenStream) -> TokenStream {
        let privates = split.kept.iter().map(|number| private(*number));
        self.is_split = true;
        self.phases = split.phases.into_iter().map(Some).collect();
        let Code { host, .. } = self.block(&split.block);
        let (label, item, [phases, _]) = (group_label(), item(Span::call_site()), phases());
        quote! {
            #unpacked
            #(let mut #privates = __gpumem::Private::new();)*
            #label: while __gpumem::Phases::next_group(#phases) {
                let #item = &__gpumem::Phases::first(#phases);
                #host
            }
            __gpumem::Language::done()
        }
    }

    /// Lowers the phase that a mark names, or the end of the group.
    pub(super) fn marked(&mut self, call: &syn::Macro) -> syn::Result<Code> {
        let host = match call.parse_body::<LitInt>() {
            Ok(number) => {
                let number: usize = number.base10_parse()?;
                let Some(phase) = self.phases.get_mut(number).and_then(Option::take) else {
                    return error(call, "there is no such phase");
                };
                self.phase(phase)?
            }
            Err(_) => {
                let label = group_label();
                quote!(continue #label;)
            }
        };
        Ok(Code { host, ..Code::default() })
    }

    fn phase(&mut self, phase: Phase) -> syn::Result<TokenStream> {
        let mentioned = split::names_in(&phase.statements);
        let uses_global = mentioned.iter().any(|name| self.names.has(name, VariableKind::ArrayParameter));
        let item = item(Span::call_site());
        let loads = phase.loads.iter().map(|(name, number)| {
            let kept = private(*number);
            quote!(let mut #name = __gpumem::Private::get(&#kept, #item);)
        });
        let again = self.statements(&phase.again).host;
        let statements = self.statements(&phase.statements).host;
        let stores = phase.stores.iter().map(|(name, number)| {
            let kept = private(*number);
            quote!(__gpumem::Private::set(&mut #kept, #item, #name);)
        });
        let then = phase.then.map(|operation| self.after_phase(&operation)).transpose()?;
        let [phases, arguments] = phases();
        let (extents, inline) = (self.shared.iter().flat_map(|(_, extents)| extents), inline());
        let run = quote!(|#item| { #(#loads)* #again #statements #(#stores)* });
        // A loop more takes rustc longer, and one over shared memory alone gains little by it.
        let each = match uses_global {
            true => {
                quote!(__gpumem::Phases::each_inside(#phases, #arguments, &[#(const { #extents }),*], #inline #run))
            }
            false => quote!(__gpumem::Phases::each(#phases, #run)),
        };
        Ok(quote!(#each?; #then))
    }

    /// An operation of waves on kept values.
    fn after_phase(&mut self, operation: &Operation) -> syn::Result<TokenStream> {
        let Operation { name, value, lane, function, result } = operation;
        let (value, result, [phases, _]) = (private(*value), private(*result), phases());
        let lane = lane.map(private).into_iter();
        let function = function.as_ref().map(|function| self.operation(function, 2)).transpose()?;
        let function = function.map(|function| function.host).into_iter();
        Ok(quote!(__gpumem::Phases::#name(#phases, &#value, #(&#lane,)* &mut #result #(, #function)*);))
    }
}
