//! Consistency of the documents with each other, the command and the catalogue. Every link
//! resolves, and everything that users can type or meet is explained.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use laggard_tests::folders;
use laggard_tests::process;
use laggard_tests::product::{Bench, TIMEOUT};

/// Documents by their path from the root of the repository.
type Documents = BTreeMap<PathBuf, String>;

/// Most lines of the README: people read them before they decide.
const README_LINES: usize = 250;
const OPTIONS: &str = "analyzer/docs/options.md";
const INDEX: &str = "analyzer/docs/README.md";
/// Crates whose sources read settings of users.
const PRODUCT: [&str; 5] = ["analyzer", "baselines", "collector", "formats", "patterns"];

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().expect("the repository")
}

/// All files with this extension, except build output and hidden files.
fn files(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

fn documents() -> Documents {
    documents_below(&root())
}

fn documents_below(root: &Path) -> Documents {
    let mut found = Vec::new();
    files(root, "md", &mut found);
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a document");
        let path = path.strip_prefix(root).expect("a path below the root");
        (path.to_owned(), text)
    };
    found.into_iter().map(read).collect()
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fence: Option<&str> = None;
    text.lines().filter(move |line| {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|m| start.starts_with(m));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (open, _) => return open.is_none(),
        }
        false
    })
}

/// A paragraph without its inline code.
fn without_code(paragraph: &str) -> String {
    let mut rest = paragraph;
    let mut text = String::new();
    while let Some(at) = rest.find('`') {
        let marks = rest[at..].chars().take_while(|&c| c == '`').count();
        let (mark, behind) = rest[at..].split_at(marks);
        text.push_str(&rest[..at]);
        rest = match behind.find(mark) {
            Some(end) => &behind[end + marks..],
            None => behind,
        };
    }
    text + rest
}

/// Targets of a document's links: `[text](target)`, and `[name]: target`.
fn links(text: &str) -> Vec<String> {
    let lines: Vec<&str> = prose(text).collect();
    let mut found = Vec::new();
    for paragraph in lines.split(|line| line.trim().is_empty()) {
        let paragraph = without_code(&paragraph.join("\n"));
        let inline = paragraph.split("](").skip(1);
        found.extend(
            inline
                .filter_map(|behind| behind.split_once(')'))
                .map(|(to, _)| to.to_owned()),
        );
        let named = paragraph.lines().filter(|line| line.starts_with('['));
        let named = named.filter_map(|line| line.split_once("]: "));
        found.extend(named.map(|(_, to)| to.trim().to_owned()));
    }
    let without_title = |link: String| {
        let target = link.split_whitespace().next().unwrap_or_default();
        target.trim_matches(['<', '>']).to_owned()
    };
    found.into_iter().map(without_title).collect()
}

fn headings(text: &str) -> impl Iterator<Item = &str> {
    prose(text).filter_map(|line| {
        let title = line.trim_start_matches('#');
        let level = line.len() - title.len();
        let is_heading = (1..=6).contains(&level) && title.starts_with(' ');
        is_heading.then(|| title.trim().trim_end_matches('#').trim())
    })
}

/// GitHub's anchors of headings: small letters, digits, `_` and `-`, a `-` for each blank. The
/// second of equal ones ends in `-1`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let name = |heading: &str| {
        // A link counts with its text.
        let mut shown = String::new();
        let mut rest = heading;
        while let Some((text, target)) = rest.split_once("](") {
            shown.push_str(text);
            rest = target.split_once(')').map_or("", |(_, behind)| behind);
        }
        shown.push_str(rest);
        let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | ' ');
        let letters = shown.chars().filter(kept).flat_map(char::to_lowercase);
        let name: String = letters.map(|c| if c == ' ' { '-' } else { c }).collect();
        let times = seen.entry(name.clone()).or_default();
        *times += 1;
        match *times {
            1 => name,
            times => format!("{name}-{}", times - 1),
        }
    };
    headings(text).map(name).collect()
}

/// A path without `.` and `..`; `None` if it leaves the repository.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            _ => return None,
        }
    }
    Some(plain)
}

/// File and heading that a link of a document leads to; `None` if outside of the repository.
fn target(document: &Path, link: &str) -> Option<(PathBuf, Option<String>)> {
    let (path, anchor) = match link.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor.to_owned())),
        None => (link, None),
    };
    let target = match path {
        "" => document.to_owned(),
        path => resolved(&document.parent()?.join(path))?,
    };
    Some((target, anchor))
}

fn is_elsewhere(link: &str) -> bool {
    ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| link.starts_with(scheme))
}

/// Broken links of all documents. `exists` knows files and directories.
fn broken_links(documents: &Documents, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    for (document, text) in documents {
        for link in links(text).iter().filter(|link| !is_elsewhere(link)) {
            let wrong = match target(document, link) {
                None => Some("leads out of the repository"),
                Some((path, _)) if !exists(&path) => Some("there is no such file"),
                Some((path, Some(anchor))) => match documents.get(&path) {
                    Some(text) if anchors(text).contains(&anchor) => None,
                    _ => Some("there is no such heading"),
                },
                Some(_) => None,
            };
            broken.extend(wrong.map(|why| format!("{}: {link}: {why}", document.display())));
        }
    }
    broken
}

fn said(bench: &Bench, words: &[&str]) -> String {
    let mut command = Command::new(&bench.command);
    command.args(words);
    let outcome = process::run(&mut command, TIMEOUT, &bench.path("said"));
    outcome.expect_orderly().expect_success().stdout
}

/// Names at the beginning of lines with this indentation, followed by words.
fn names(text: &str, indent: usize) -> impl Iterator<Item = &str> {
    text.lines().filter_map(move |line| {
        let behind = line.trim_start_matches(' ');
        let (name, rest) = behind.split_once(' ')?;
        let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let is_entry = line.len() - behind.len() == indent && rest.starts_with(' ');
        (is_name && is_entry && !name.is_empty()).then_some(name)
    })
}

/// Options such as `--top`, anywhere in a text.
fn options(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for word in text.split(|c: char| !c.is_ascii_lowercase() && c != '-') {
        let name = word.trim_start_matches('-');
        let is_option = word.len() == name.len() + 2 && !name.is_empty();
        if is_option {
            found.insert(word.trim_end_matches('-').to_owned());
        }
    }
    found
}

/// The part of a document below a heading, up to the next one of the same level.
fn section<'t>(text: &'t str, heading: &str) -> Option<&'t str> {
    let (_, behind) = text.split_once(&format!("\n## {heading}\n"))?;
    Some(behind.split("\n## ").next().unwrap_or(behind))
}

/// Options that only a command has, or only its section.
fn differences(command: &str, help: &str, section: &str) -> Vec<String> {
    let entries = |text: &str, begin: &str, part: fn(&str) -> Option<&str>| {
        let lines = text.lines().map(str::trim_start);
        let entries = lines.filter(|line| line.starts_with(begin));
        options(&entries.filter_map(part).collect::<Vec<_>>().join(" "))
    };
    // After two blanks, or in the second cell, comes a description.
    let of_help = entries(help, "-", |line| line.split("  ").next());
    let of_page = entries(section, "| `-", |line| line.split('|').nth(1));
    let missing = of_help
        .difference(&of_page)
        .filter(|name| *name != "--help");
    let missing = missing.map(|name| format!("{command}: {name} is not explained"));
    let stale = of_page.difference(&of_help);
    let stale = stale.map(|name| format!("{command}: {name} is no option"));
    missing.chain(stale).collect()
}

/// Names of variables in a source's string literals.
fn variables(source: &str) -> impl Iterator<Item = &str> {
    source.match_indices("\"LAGGARD_").filter_map(|(at, _)| {
        let name = source[at + 1..].split('"').next()?;
        let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        name.chars().all(is_name).then_some(name)
    })
}

#[test]
fn every_link_leads_somewhere() {
    let root = root();
    let broken = broken_links(&documents(), |path| root.join(path).exists());
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
}

/// What a page links to is installed with it: readers need no clone.
#[test]
fn every_link_of_the_installed_book_leads_somewhere() {
    let bench = Bench::beside("installed_book");
    let mut script = Command::new(root().join("analyzer/packaging/install.sh"));
    script.arg("install").arg(folders::target());
    script.env("PREFIX", &bench.dir).env_remove("DESTDIR");
    process::run(&mut script, TIMEOUT, &bench.path("said")).expect_success();
    let share = bench.path("share");
    let documents = documents_below(&share);
    let broken = broken_links(&documents, |path| share.join(path).exists());
    for page in ["doc/laggard/README.md", "laggard/python/README.md"] {
        assert!(documents.contains_key(Path::new(page)), "{page}");
    }
    assert_eq!(broken, [""; 0]);
}

/// ARCHITECTURE.md says that paths which begin at no folder of the repository are of the engine.
#[test]
fn every_file_of_the_architecture_is_there() {
    let text = &documents()[Path::new("ARCHITECTURE.md")];
    let roots = [root(), root().join("analyzer/engine/src")];
    let is_there = |file: &str| roots.iter().any(|root| root.join(file).exists());
    let files = text.split('`').skip(1).step_by(2);
    let mut files = files.filter(|file| file.ends_with(".rs") && file.contains('/'));
    let missing: Vec<&str> = files.by_ref().filter(|file| !is_there(file)).collect();
    assert_eq!(missing, [""; 0]);
    assert!(text.contains("`waits/charging.rs`"));
}

#[test]
fn what_is_broken_is_found() {
    let page = "# Title\n[a](other.md) [b](other.md#a-b) [c](#title) [`d`](https://example.org/x)\n\
        ![e](e.svg)\n\n`[f](code.md)`\n```\n[g](code.md)\n```\n[h]: other.md#late_sender-1\n";
    let other = "# A: *b*?\n## `late_sender`\n## late_sender\n```\n# no heading\n```\n";
    let mut documents: Documents = BTreeMap::new();
    documents.insert("docs/page.md".into(), page.to_owned());
    documents.insert("docs/other.md".into(), other.to_owned());
    let wrong = |documents: &Documents| {
        let is_there = |path: &Path| path == "docs/e.svg" || documents.contains_key(path);
        broken_links(documents, is_there)
    };
    assert_eq!(wrong(&documents), [""; 0]);
    for (link, why) in [
        ("missing.md", "there is no such file"),
        ("../docs/missing/other.md", "there is no such file"),
        ("other.md#no-heading", "there is no such heading"),
        ("#titel", "there is no such heading"),
        ("e.svg#part", "there is no such heading"),
        ("../../other.md", "leads out of the repository"),
        ("/docs/other.md", "leads out of the repository"),
    ] {
        let mut documents = documents.clone();
        documents.insert(
            "docs/third.md".into(),
            format!("Some [text\nin two lines]({link})."),
        );
        assert_eq!(wrong(&documents), [format!("docs/third.md: {link}: {why}")]);
    }
}

#[test]
fn every_page_is_in_the_index() {
    let documents = documents();
    let index = Path::new(INDEX);
    let listed: BTreeSet<PathBuf> = links(&documents[index])
        .iter()
        .filter_map(|link| target(index, link))
        .map(|(path, _)| path)
        .collect();
    let is_page = |path: &&PathBuf| path.parent().is_some_and(|home| home.ends_with("docs"));
    let pages: Vec<&PathBuf> = documents.keys().filter(is_page).collect();
    assert!(pages.len() > 10, "{pages:?}");
    for page in pages.into_iter().filter(|page| *page != index) {
        assert!(listed.contains(page), "{INDEX} does not list {page:?}");
    }
}

#[test]
fn every_pattern_and_rule_has_a_heading() {
    let bench = Bench::beside("documents-patterns");
    let documents = documents();
    let catalogue = said(&bench, &["patterns"]);
    let (patterns, rules) = catalogue
        .split_once("\nRules for hints\n")
        .expect("patterns, then rules");
    // Parts of a pattern are indented further.
    let patterns: Vec<&str> = names(patterns, 2).chain(names(patterns, 4)).collect();
    let rules: Vec<&str> = names(rules, 2).collect();
    assert!(patterns.contains(&"late_sender") && patterns.contains(&"early_fence"));
    assert!(rules.contains(&"eager_limit"));
    for (ids, page) in [
        (patterns, "analyzer/docs/patterns.md"),
        (rules, "analyzer/docs/hints.md"),
    ] {
        let headings: Vec<&str> = headings(&documents[Path::new(page)]).collect();
        for id in ids {
            assert!(headings.contains(&id), "{page} has no heading {id}");
        }
    }
}

#[test]
fn every_option_is_explained() {
    let bench = Bench::beside("documents-options");
    let page = &documents()[Path::new(OPTIONS)];
    let help = said(&bench, &["--help"]);
    let commands: Vec<&str> = names(&help, 2).filter(|name| *name != "help").collect();
    assert!(commands.contains(&"analyze"), "{commands:?}");
    let mut wrong = Vec::new();
    for command in commands {
        let help = said(&bench, &[command, "--help"]);
        let section = section(page, &format!("laggard {command}"));
        let section = section.unwrap_or_else(|| panic!("{OPTIONS} has no section {command}"));
        wrong.extend(differences(command, &help, section));
    }
    assert!(wrong.is_empty(), "{OPTIONS}:\n{}", wrong.join("\n"));
}

#[test]
fn options_that_differ_are_found() {
    let help = "Usage: x --not-this\n\nOptions:\n  -o, --output <FILE>  As --top\n      --top-n <N>\n  \
        -h, --help\n";
    let page = "Text --free.\n\n| `-o FILE`, `--output FILE` | as `--top` |\n| `--top-n N` | x |\n";
    assert_eq!(differences("x", help, page), [""; 0]);
    assert_eq!(
        differences("x", help, &page.replace("top-n", "top-m")),
        ["x: --top-n is not explained", "x: --top-m is no option"]
    );
}

#[test]
fn every_variable_is_explained() {
    let page = &documents()[Path::new(OPTIONS)];
    let mut sources = Vec::new();
    for part in PRODUCT {
        files(&root().join(part), "rs", &mut sources);
    }
    let mut known = BTreeSet::new();
    for source in sources {
        let text = fs::read_to_string(source).expect("a source");
        // Tests restart themselves with variables of their own.
        let of_users = variables(&text).filter(|name| !name.starts_with("LAGGARD_TEST_"));
        known.extend(of_users.map(str::to_owned));
    }
    assert!(
        known.contains("LAGGARD_MODE") && known.contains("LAGGARD_LIB"),
        "{known:?}"
    );
    for name in known {
        assert!(
            page.contains(&format!("`{name}`")),
            "{OPTIONS} lacks {name}"
        );
    }
    let source = r#"set("LAGGARD_A"); say("LAGGARD_B is"); set("LAGGARD_C2")"#;
    assert_eq!(
        variables(source).collect::<Vec<_>>(),
        ["LAGGARD_A", "LAGGARD_C2"]
    );
}

#[test]
fn the_readme_is_short() {
    let lines = documents()[Path::new("README.md")].lines().count();
    assert!(
        lines <= README_LINES,
        "README.md has {lines} lines, more than {README_LINES}"
    );
}
