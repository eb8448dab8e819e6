//! Names of functions as in their source.

use addr2line::gimli::{self, DwLang};
use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Deepest nesting of a name: a file may contain anything.
const DEEPEST: u32 = 64;
/// Languages whose compilers append an underscore.
const FORTRAN: &[DwLang] = &[
    gimli::DW_LANG_Fortran77,
    gimli::DW_LANG_Fortran90,
    gimli::DW_LANG_Fortran95,
    gimli::DW_LANG_Fortran03,
    gimli::DW_LANG_Fortran08,
    gimli::DW_LANG_Fortran18,
];

/// A name without additions of linkers, return type and parameters.
pub fn plain(symbol: &str, language: Option<DwLang>) -> String {
    let is_fortran = language.is_some_and(|language| FORTRAN.contains(&language));
    cpp(symbol)
        .or_else(|| fortran(symbol, is_fortran))
        .unwrap_or_else(|| match is_mangled(symbol) {
            true => addr2line::demangle_auto(symbol.into(), language).into_owned(),
            false => symbol.to_owned(),
        })
}

/// Whether a compiler of C++ or Rust made it. The demangler takes other names for types: `f` for `float`.
fn is_mangled(symbol: &str) -> bool {
    let begins = ["_Z", "__Z", "_R", "__R", "_GLOBAL_"];
    begins.iter().any(|begin| symbol.starts_with(begin))
}

fn cpp(symbol: &str) -> Option<String> {
    if !symbol.starts_with("_Z") || is_rust(symbol) {
        return None;
    }
    let limit = ParseOptions::default().recursion_limit(DEEPEST);
    let parsed = Symbol::new_with_options(symbol, &limit).ok()?;
    let brief = DemangleOptions::new().no_params().no_return_type();
    let brief = brief.recursion_limit(DEEPEST);
    parsed.demangle_with_options(&brief).ok()
}

/// Whether it ends with a hash, as names of Rust that look like C++ names.
fn is_rust(symbol: &str) -> bool {
    let hash = symbol
        .strip_suffix('E')
        .and_then(|rest| rest.rsplit_once("17h"));
    hash.is_some_and(|(_, hash)| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// `module::procedure` for `__module_MOD_procedure`. If the language is Fortran, also `procedure`
/// for `procedure_` and for the nested `procedure.12`.
fn fortran(symbol: &str, is_fortran: bool) -> Option<String> {
    let in_module = symbol.strip_prefix("__");
    if let Some((module, name)) = in_module.and_then(|rest| rest.split_once("_MOD_")) {
        return Some(format!("{module}::{name}"));
    }
    if !is_fortran || symbol.ends_with("__") {
        return None;
    }
    let numbered = symbol.rsplit_once('.');
    let inner = numbered.filter(|(_, number)| number.bytes().all(|b| b.is_ascii_digit()));
    let name = inner.map_or(symbol, |(name, _)| name.trim_end_matches(".0"));
    let name = name.strip_suffix('_').unwrap_or(name);
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpp_names_have_neither_types_nor_parameters() {
        let plain = |symbol| super::plain(symbol, None);
        assert_eq!(
            plain("_ZN9LAMMPS_NS4CommC2EPNS_6LAMMPSE"),
            "LAMMPS_NS::Comm::Comm"
        );
        assert_eq!(plain("_Z8exchangeIdEvPT_i"), "exchange<double>");
        assert_eq!(plain("_ZNK4Grid4haloEv"), "Grid::halo");
        assert_eq!(
            plain("_ZN4core3fmt5write17h0123456789abcdefE"),
            "core::fmt::write"
        );
        assert_eq!(plain("exchange"), "exchange");
        assert_eq!(plain("_Zwrong"), "_Zwrong");
        assert_eq!(plain("_RNvC4heat4step"), "heat::step");
    }

    #[test]
    fn names_that_are_no_mangled_ones_stay() {
        // Alone, these are types.
        let types = "vwbcahstijlmxynofdegz".chars().map(String::from);
        let types = types.chain(["Pi", "Kc", "Dd", "A4_i", "St", "Ss", "R1f"].map(String::from));
        let cpp = Some(gimli::DW_LANG_C_plus_plus_14);
        for name in types {
            for language in [None, Some(gimli::DW_LANG_C11), cpp] {
                assert_eq!(plain(&name, language), name);
            }
        }
    }

    #[test]
    fn fortran_names_are_those_of_the_source() {
        let fortran = Some(gimli::DW_LANG_Fortran08);
        let plain = |symbol| super::plain(symbol, fortran);
        assert_eq!(
            plain("__mpi_pattern_MOD_late_scatterv"),
            "mpi_pattern::late_scatterv"
        );
        assert_eq!(plain("conj_grad_"), "conj_grad");
        assert_eq!(plain("inner.12"), "inner");
        assert_eq!(plain("inner.0.1"), "inner");
        assert_eq!(plain("MAIN__"), "MAIN__");
        // C has such names, too.
        assert_eq!(super::plain("conj_grad_", None), "conj_grad_");
        assert_eq!(super::plain("__m_MOD_f", None), "m::f");
    }
}
