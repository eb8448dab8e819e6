//! Pictures by keyboard.

use laggard_tests::browser::Browser;
use laggard_tests::served::Served;
use laggard_tests::tour::{WIDTH, keep, key, number, settle};

use super::has_hash;

#[test]
fn keys_reach_calls_ranks_times_and_cells() {
    let served = Served::new("serve-keys");
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&served.address);
    settle(&mut browser);
    let focus = |browser: &mut Browser, what: &str| {
        browser.value(&format!("document.querySelector('{what}').focus()"));
    };
    let press = |browser: &mut Browser, keys: &[&str]| {
        for key in keys {
            browser.press(key);
            settle(browser);
        }
    };
    let text = |browser: &mut Browser, what: &str| {
        let text = browser.value(&format!("document.querySelector('{what}').textContent"));
        text.as_str().expect("a text").to_owned()
    };
    // The map: a rank, then a time.
    focus(&mut browser, "#heat");
    press(&mut browser, &["ArrowDown"]);
    assert!(text(&mut browser, "#heat-at").contains("Enter chooses the row"));
    press(&mut browser, &["Enter"]);
    assert!(has_hash(&mut browser, "ranks=1"));
    browser.value(
        "for (const key of ['ArrowRight', 'ArrowRight', 'ArrowRight'])
             document.getElementById('heat').dispatchEvent(
                 new KeyboardEvent('keydown', {key, shiftKey: true, bubbles: true}))",
    );
    assert!(text(&mut browser, "#heat-at").contains("Enter shows"));
    press(&mut browser, &["Enter"]);
    assert!(has_hash(&mut browser, "until=") && has_hash(&mut browser, "ranks=1"));
    assert!(!text(&mut browser, "#heat-at").contains("Enter shows"));
    key(&mut browser, "0");
    settle(&mut browser);
    // The time line: from a finding to its worst call and on to whom that waits for, then to others.
    focus(&mut browser, "#findings tr[tabindex]");
    press(&mut browser, &["Enter"]);
    focus(&mut browser, "#line");
    let mut opened = Vec::new();
    for keys in [
        &["Enter"][..],
        &["ArrowRight", "ArrowRight", "Enter"],
        &["ArrowDown", "Enter"],
        &["ArrowUp", "Enter"],
    ] {
        press(&mut browser, keys);
        let told = text(&mut browser, "#line-at");
        let name = text(&mut browser, "#call h2");
        assert!(
            told.contains(&name) && told.ends_with("Enter opens it."),
            "{told} {name}"
        );
        if opened.is_empty() {
            assert_eq!(name, served.report["bottlenecks"][0]["operation"]);
            let steps = "document.getElementById('call').dataset.steps";
            assert!(number(&mut browser, steps) >= 1.0);
        }
        let call = browser.value("new URLSearchParams(location.hash.slice(1)).get('call')");
        opened.push(call.as_str().expect("a call").to_owned());
    }
    let rank = |call: &str| call.split('_').next().expect("a rank").to_owned();
    assert!(
        opened[0] != opened[1] && rank(&opened[2]) != rank(&opened[3]),
        "{opened:?}"
    );
    keep("keys.png", &browser.picture(WIDTH));
    // Where keys are used no more, nothing is marked.
    focus(&mut browser, "#out");
    assert_eq!(text(&mut browser, "#line-at"), "");
    // The matrix.
    focus(&mut browser, "#matrix");
    press(&mut browser, &["ArrowRight", "ArrowRight"]);
    assert!(text(&mut browser, "#matrix-at").starts_with("0 waits for 2: "));
    press(&mut browser, &["Enter"]);
    assert!(has_hash(&mut browser, "ranks=0-2"));
    assert_eq!(browser.complaints(), [""; 0]);
}
