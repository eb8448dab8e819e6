//! Reports with hostile texts.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use serde_json::json;

use super::*;

/// Texts that must stay text everywhere.
const ATTACKS: &[&str] = &[
    "<script>window.broken = 1</script>",
    "\"><img src=x onerror=\"window.broken = 2\">",
    "' onmouseover='window.broken = 3' x='",
    "</style><style>body { display: none }</style>",
    "</script><script>window.broken = 4</script>",
    "--><svg onload=window.broken=5>",
    "javascript:window.broken=6",
    "\u{202e}gnp.exe\u{0}\u{1b}[2J",
    "&lt;b&gt;&#60;",
];

/// A report with the attacks as every text, and this many findings.
fn report(findings: usize) -> Value {
    let text = include_str!("../../../formats/report/tests/example.json");
    let mut report: Value = serde_json::from_str(text).expect("JSON");
    let found = report["bottlenecks"][0].clone();
    report["bottlenecks"] = std::iter::repeat_n(found, findings).collect();
    let region = json!({
        "region": "r", "kind": "region", "location": {"file": "", "line": 0, "function": ""},
        "calls": u64::MAX, "locations": 1, "inclusive_s": 1e300, "exclusive_s": 1e300,
        "mean_s": 1e300, "max_s": 1e300, "worst_rank": u32::MAX, "imbalance": 1e300,
        "imbalance_s": 1e300, "percent": 1e300, "instance_mean_s": -1.0, "instance_max_s": 1e300,
        "filter": "imbalance",
    });
    report["regions"] = json!([region]);
    let mut next = 0;
    attack(&mut report, "", &mut next);
    report["metrics"] = json!({"<script>window.broken = 7</script>": {"total_s": 1e308, "percent": 1e308, "instances": 1}});
    report
}

/// Puts an attack into every text except `schema` and `severity`, which tell how to read the rest.
fn attack(value: &mut Value, key: &str, next: &mut usize) {
    match value {
        Value::String(text) if key != "schema" && key != "severity" => {
            *text = format!("{}{}", ATTACKS[*next % ATTACKS.len()], *next);
            *next += 1;
        }
        Value::Array(values) => values.iter_mut().for_each(|one| attack(one, key, next)),
        Value::Object(fields) => fields
            .iter_mut()
            .for_each(|(key, one)| attack(one, key, next)),
        _ => {}
    }
}

fn written(bench: &Bench, name: &str, report: &Value) -> PathBuf {
    let path = bench.path(name);
    fs::write(&path, report.to_string()).expect("a report");
    path
}

#[test]
fn texts_of_a_report_do_nothing() {
    let bench = Bench::beside("html-hostile");
    let mut report = report(100);
    report["bottlenecks"][0]["name"] = json!("x".repeat(1_000_000));
    report["run"]["arguments"] = json!(["y".repeat(1_000_000)]);
    report["run"]["ranks"] = json!(u32::MAX);
    report["bottlenecks"][1]["ranks"][0]["rank"] = json!(u32::MAX);
    report["bottlenecks"][1]["severity_s"] = json!(1e308);
    report["bottlenecks"][2]["worst_instance"]["timeline"]["start_s"] = json!(-1e308);
    report["bottlenecks"][3]["worst_instance"]["timeline"]["end_s"] = json!(1e308);
    report["locations"][0]["computation_s"] = json!(-5.0);
    let page = page(&bench, &written(&bench, "hostile.json", &report));
    assert!(fs::metadata(&page).expect("a page").len() < LARGEST);
    let text = fs::read_to_string(&page).expect("a page");
    for odd in ["NaN", "inf\"", "<script>window", "\u{202e}", "\u{1b}"] {
        assert!(!text.contains(odd), "{odd:?}");
    }
    let mut browser = Browser::start(&bench.dir);
    open(&mut browser, &page);
    assert_eq!(browser.value("typeof window.broken"), "undefined");
    assert_eq!(count(&mut browser, "script, style, img, iframe, object"), 2);
    let handlers = "[...document.querySelectorAll('*')].flatMap((one) => [...one.attributes]) \
                    .filter((one) => one.name.startsWith('on') || one.name === 'style').length";
    assert_eq!(browser.value(handlers), 0);
    let links =
        "[...document.links].filter((one) => !one.getAttribute('href').startsWith('#')).length";
    assert_eq!(browser.value(links), 0);
    assert_eq!(column(&mut browser, 0).len(), 100);
    // The page must forbid foreign scripts, not only lack them.
    browser.value(
        "(() => { const other = document.createElement('script'); \
         other.textContent = 'window.broken = 8'; document.body.append(other); })()",
    );
    assert_eq!(browser.value("typeof window.broken"), "undefined");
    assert!(!browser.complaints().is_empty());
}

#[test]
fn only_sources_are_shown() {
    let bench = Bench::beside("html-sources");
    let text = "int main(void)\n{\n    secret();\n}\n";
    let file = |name: &str, content: &[u8]| {
        let path = bench.path(name);
        fs::write(&path, content).expect("a file");
        path.to_str().expect("a path").to_owned()
    };
    let pipe = bench.path("pipe.c");
    let name = CString::new(pipe.as_os_str().as_bytes()).expect("a path");
    // SAFETY: `name` is a C string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let mut binary = text.as_bytes().to_vec();
    binary.push(0);
    let large = [text.as_bytes(), &vec![b'\n'; 5 << 20]].concat();
    let refused = [
        file("id_rsa", text.as_bytes()),
        file("key.pem", text.as_bytes()),
        file("binary.c", &binary),
        file("large.c", &large),
        bench.dir.to_str().expect("a path").to_owned(),
        pipe.to_str().expect("a path").to_owned(),
        "/dev/zero".to_owned(),
        bench.path("missing.c").to_str().expect("a path").to_owned(),
    ];
    fs::create_dir_all(bench.path("directory.c")).expect("a directory");
    let shown = |files: &[(&str, u32)], began: f64| {
        let example = include_str!("../../../formats/report/tests/example.json");
        let mut report: Value = serde_json::from_str(example).expect("JSON");
        report["run"]["began_unix_s"] = json!(began);
        let found = report["bottlenecks"][0].clone();
        report["bottlenecks"] = files
            .iter()
            .map(|(file, line)| {
                let mut found = found.clone();
                found["location"]["file"] = json!(file);
                found["location"]["line"] = json!(line);
                found["causes"] = json!([]);
                found
            })
            .collect();
        let page = page(&bench, &written(&bench, "sources.json", &report));
        fs::read_to_string(page).expect("a page")
    };
    let mut files: Vec<(&str, u32)> = refused.iter().map(|file| (file.as_str(), 3)).collect();
    let directory = bench.path("directory.c");
    files.push((directory.to_str().expect("a path"), 3));
    let good = file("good.c", text.as_bytes());
    // No such line.
    files.push((&good, 5));
    files.push((&good, u32::MAX));
    let page = shown(&files, 4e9);
    assert!(!page.contains("secret"), "{page}");
    // The compiled name, or a relative one.
    for name in [good.as_str(), "good.c"] {
        let page = shown(&[(name, 3)], 4e9);
        assert!(
            page.contains("secret();") && !page.contains("was changed after"),
            "{name}"
        );
        assert!(
            shown(&[(name, 3)], 1e9).contains("was changed after"),
            "{name}"
        );
    }
}

#[test]
fn other_files_are_left_alone() {
    let bench = Bench::beside("html-files");
    let report = written(&bench, "report.json", &report(1));
    let thesis = bench.path("thesis.html");
    fs::write(&thesis, "<!DOCTYPE html><title>thesis</title>").expect("a file");
    let refused = |report: &Path, page: &Path, why: &str| {
        let outcome = show(&bench, report, page).expect_orderly();
        assert_eq!(
            (outcome.code, outcome.stderr.lines().count()),
            (Some(1), 1),
            "{outcome}"
        );
        assert!(outcome.stderr.contains(why), "{outcome}");
    };
    refused(&report, &thesis, "thesis.html exists and is not a page");
    refused(&report, &bench.dir, "directory");
    refused(&report, &bench.path("missing/page.html"), "cannot write");
    refused(&report, &report, "is not a page");
    // A file that is no report does not change another one's page.
    let page = page(&bench, &report);
    let before = fs::read(&page).expect("a page");
    let broken = bench.path("broken.json");
    fs::write(&broken, "{\"schema\": \"laggard-report/1\"}").expect("a file");
    refused(&broken, &page, "damaged report");
    assert_eq!(fs::read(&page).expect("a page"), before);
    // A trace directory stands for the report in it; the same report gives the same page.
    let outcome = show(&bench, &bench.dir, &page).expect_success();
    assert!(outcome.stdout.starts_with("Page written to "), "{outcome}");
    assert_eq!(fs::read(&page).expect("a page"), before);
    let text = fs::read_to_string(&thesis).expect("a file");
    assert_eq!(text, "<!DOCTYPE html><title>thesis</title>");
}
