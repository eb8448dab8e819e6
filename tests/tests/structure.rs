//! Rooms of a crate know each other in one direction: their imports form no circle.
//!
//! A file imports another if a path in it leads to an item of that file, directly or through
//! re-exports (`pub use`). Test modules do not count, nor do paths inside of macros.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;

/// A module, by the names from the root of its crate.
type Module = Vec<String>;

#[derive(Default)]
struct File {
    /// Names from its `use` items, with their paths.
    names: BTreeMap<String, Vec<String>>,
    /// The re-exported ones among them.
    exported: BTreeSet<String>,
    /// All paths in it.
    paths: Vec<Vec<String>>,
}

impl File {
    fn add_use(&mut self, tree: &syn::UseTree, path: &[String], is_exported: bool) {
        let further = |ident: &syn::Ident| [path, &[ident.to_string()]].concat();
        match tree {
            syn::UseTree::Path(use_) => {
                self.add_use(&use_.tree, &further(&use_.ident), is_exported)
            }
            syn::UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|tree| self.add_use(tree, path, is_exported)),
            syn::UseTree::Name(name) if name.ident == "self" => {
                self.add_name(path.last().cloned(), path.to_vec(), is_exported);
            }
            syn::UseTree::Name(name) => {
                self.add_name(
                    Some(name.ident.to_string()),
                    further(&name.ident),
                    is_exported,
                );
            }
            syn::UseTree::Rename(name) => {
                let path = further(&name.ident);
                self.add_name(Some(name.rename.to_string()), path, is_exported);
            }
            syn::UseTree::Glob(_) => self.paths.push(path.to_vec()),
        }
    }

    fn add_name(&mut self, name: Option<String>, path: Vec<String>, is_exported: bool) {
        let Some(name) = name else { return };
        if is_exported {
            self.exported.insert(name.clone());
        } else {
            self.paths.push(path.clone());
        }
        self.names.insert(name, path);
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    let of_tests = |a: &syn::Attribute| {
        a.path().is_ident("cfg")
            && a.parse_args::<syn::Path>()
                .is_ok_and(|p| p.is_ident("test"))
    };
    attributes.iter().any(of_tests)
}

impl<'a> Visit<'a> for File {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !is_test(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        if !is_test(&item.attrs) {
            let is_exported = !matches!(item.vis, syn::Visibility::Inherited);
            self.add_use(&item.tree, &[], is_exported);
        }
    }

    // `pub(crate)` imports nothing.
    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names = path.segments.iter().map(|one| one.ident.to_string());
        self.paths.push(names.collect());
        syn::visit::visit_path(self, path);
    }
}

struct Crate {
    files: BTreeMap<Module, File>,
}

impl Crate {
    fn read(sources: &Path) -> Crate {
        let mut files = BTreeMap::new();
        let mut left = vec![sources.to_path_buf()];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(&directory).expect("sources") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    left.push(path);
                } else if path.extension().is_some_and(|end| end == "rs")
                    && path.file_stem().is_some_and(|name| name != "tests")
                {
                    let text = fs::read_to_string(&path).expect("a source");
                    let tree = syn::parse_file(&text).expect("Rust");
                    let mut file = File::default();
                    file.visit_file(&tree);
                    files.insert(module_of(&path, sources), file);
                }
            }
        }
        Crate { files }
    }

    /// The file that a path in the file of `from` leads to.
    fn lead(&self, from: &Module, path: &[String], steps: u32) -> Option<Module> {
        let (first, mut rest) = path.split_first()?;
        // Names that lead to each other.
        if steps > 16 {
            return None;
        }
        let mut at = match first.as_str() {
            "crate" => Module::new(),
            "self" => from.clone(),
            "super" => from.split_last()?.1.to_vec(),
            name => {
                let child = [&from[..], &[name.to_owned()]].concat();
                if self.files.contains_key(&child) {
                    child
                } else {
                    let known = self.files[from].names.get(name)?;
                    let is_itself = known.len() == 1 && known[0] == *name;
                    let whole = [known, rest].concat();
                    return (!is_itself).then(|| self.lead(from, &whole, steps + 1))?;
                }
            }
        };
        while let Some((name, further)) = rest.split_first() {
            let child = [&at[..], std::slice::from_ref(name)].concat();
            if name == "super" {
                at.pop();
            } else if self.files.contains_key(&child) {
                at = child;
            } else {
                let file = self.files.get(&at)?;
                if file.exported.contains(name) {
                    let whole = [&file.names[name], further].concat();
                    return self.lead(&at, &whole, steps + 1);
                }
                break;
            }
            rest = further;
        }
        // A module that is only named, as in `use super::{other}`, is no item of a file.
        self.files.contains_key(&at).then_some(at)
    }

    /// Which files import which, grouped by `of`.
    fn imports(&self, of: impl Fn(&Module) -> Module) -> BTreeMap<Module, BTreeSet<Module>> {
        let mut all: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (from, file) in &self.files {
            let known = all.entry(of(from)).or_default();
            let leads = file
                .paths
                .iter()
                .filter_map(|path| self.lead(from, path, 0));
            known.extend(leads.map(|to| of(&to)).filter(|to| *to != of(from)));
        }
        all
    }
}

fn module_of(path: &Path, sources: &Path) -> Module {
    let path = path.strip_prefix(sources).expect("below");
    let mut names: Module = path
        .with_extension("")
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    if names.last().is_some_and(|name| name == "mod") || names == ["lib"] || names == ["main"] {
        names.pop();
    }
    names
}

/// Sets of several modules in which each leads to every other.
fn circles(imports: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Vec<String>> {
    let reached = |from: &Module| {
        let mut known = BTreeSet::new();
        let mut left = vec![from];
        while let Some(one) = left.pop() {
            for to in imports.get(one).into_iter().flatten() {
                if known.insert(to) {
                    left.push(to);
                }
            }
        }
        known
    };
    let reached: BTreeMap<_, _> = imports.keys().map(|one| (one, reached(one))).collect();
    let mut circles = BTreeSet::new();
    for (one, others) in &reached {
        let leads_back = |other: &&&Module| reached.get(**other).is_some_and(|r| r.contains(one));
        let circle = others.iter().filter(leads_back);
        let circle: Vec<String> = circle.map(|other| other.join("::")).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn crates() -> impl Iterator<Item = PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = fs::read_to_string(root.join("Cargo.toml")).expect("the workspace");
    let members = text.split("members = [").nth(1).expect("members");
    let members = members.split(']').next().expect("their end");
    let members = members.split('"').skip(1).step_by(2);
    let members: Vec<PathBuf> = members
        .map(|member| root.join(member).join("src"))
        .collect();
    assert!(members.len() > 10, "{members:?}");
    members.into_iter()
}

/// The collector is one room: any call of a program may need every part of it.
const ONE_ROOM: &str = "collector/src";

/// A room is an entry at the root of a crate: a file, or a directory with all its content. Files
/// inside of a directory may know each other. The front page (`lib.rs`) may show any room.
#[test]
fn rooms_of_a_crate_do_not_import_each_other_in_circles() {
    let room = |module: &Module| module.iter().take(1).cloned().collect::<Module>();
    let mut found = Vec::new();
    for sources in crates().filter(|sources| !sources.ends_with(ONE_ROOM)) {
        let mut imports = Crate::read(&sources).imports(room);
        imports.remove(&Module::new());
        let circles = circles(&imports);
        found.extend(circles.iter().map(|circle| {
            let name = sources
                .parent()
                .and_then(Path::file_name)
                .unwrap_or_default();
            format!("{name:?}: {}", circle.join(" "))
        }));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Circles are found, even through re-exported or renamed names.
#[test]
fn a_circle_is_seen() {
    let scratch = laggard_tests::product::scratch().join("structure");
    let write = |name: &str, text: &str| {
        let path = scratch.join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        fs::write(path, text).expect("written");
    };
    write("lib.rs", "mod a; mod b; mod c; pub use b::B;");
    write(
        "a.rs",
        "use crate::B as Other; pub struct A; fn f(_: Other) {}",
    );
    write("b.rs", "pub struct B(pub super::a::A);");
    write("c/mod.rs", "mod d; pub fn f() { d::g() }");
    write(
        "c/d.rs",
        "use super::super::a; pub fn g() { let _ = a::A; }\n#[cfg(test)] mod tests { use super::super::f; }",
    );
    let read = Crate::read(&scratch);
    let found = circles(&read.imports(Module::clone));
    assert_eq!(found, [["a", "b"]]);
    write("b.rs", "pub struct B;");
    let found = circles(&Crate::read(&scratch).imports(Module::clone));
    assert_eq!(found, Vec::<Vec<String>>::new());
}
