//! Addresses of the page: what they lead to, what they cannot, and how often they change.

use laggard_tests::browser::Browser;
use laggard_tests::served::{PATIENCE, Served};
use laggard_tests::tour::{key, number, settle, settle_on};
use std::time::{Duration, Instant};

use super::has_hash;

/// Waits until all views have answered, and returns what is wrong.
#[track_caller]
fn problem(browser: &mut Browser) -> String {
    let begun = Instant::now();
    while browser.value("document.body?.dataset.state") != "ready" {
        assert!(begun.elapsed() < PATIENCE, "{:?}", browser.complaints());
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = browser.value("document.getElementById('problem').textContent");
    text.as_str().expect("a text").to_owned()
}

/// The address, once the page writes no other one: it does so a little later than it shows rows.
fn written(browser: &mut Browser) -> serde_json::Value {
    let mut link = browser.value("location.href");
    loop {
        std::thread::sleep(Duration::from_millis(300));
        let next = browser.value("location.href");
        if next == link {
            return link;
        }
        link = next;
    }
}

#[test]
fn what_a_link_cannot_show_is_said_until_it_is_let_go() {
    let served = Served::new("serve-links");
    let mut browser = Browser::start(&served.bench.dir);
    for (word, told) in [
        (
            "node=99999",
            "Profile: the report has no such place. Escape shows the whole run.",
        ),
        (
            "node=0123456789ab",
            "Profile: the report has no such place. Escape shows the whole run.",
        ),
        (
            "call=0_99999_1",
            "The call: no such call. Escape closes it.",
        ),
        ("call=9999_1_2", "The call: no such call. Escape closes it."),
        (
            "part=5_1_3_2",
            "Who sends whom: ranks are 0 to 3. Escape shows all ranks.",
        ),
    ] {
        browser.visit("about:blank");
        browser.visit(&format!("{}#{word}", served.address));
        assert_eq!(problem(&mut browser), told, "{word}");
        // All else is there, and answers to other views change nothing.
        let rows = number(&mut browser, "document.querySelectorAll('#tree tr').length");
        assert!(rows > 1.0, "{word}");
        key(&mut browser, "+");
        assert_eq!(problem(&mut browser), told, "{word}");
        key(&mut browser, "Escape");
        settle(&mut browser);
        let name = word.split('=').next().expect("a name");
        assert!(!has_hash(&mut browser, name), "{word}");
        assert!(has_hash(&mut browser, "until="), "{word}");
    }
    // Of two, each is said; the whole run has neither.
    browser.visit("about:blank");
    let both = format!("{}#node=99999&call=0_99999_1", served.address);
    browser.visit(&both);
    let told = problem(&mut browser);
    assert!(
        told.contains("no such place") && told.contains("no such call"),
        "{told}"
    );
    key(&mut browser, "0");
    settle(&mut browser);
    // Ranks that there are not cannot be chosen at all.
    browser.visit("about:blank");
    browser.visit(&format!("{}#ranks=2-9", served.address));
    let told = problem(&mut browser);
    assert!(told.contains("ranks 2-9"), "{told}");
    key(&mut browser, "+");
    settle(&mut browser);
}

#[test]
fn a_link_shows_the_rows_that_its_sender_saw() {
    let served = Served::new("serve-rows");
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&format!("{}#profile=waiting", served.address));
    settle(&mut browser);
    let rows = "['tree', 'metrics', 'system'].map((id) => document.getElementById(id).textContent).join('|')";
    let click = |browser: &mut Browser, table: &str, at: usize| {
        browser.value(&format!(
            "[...document.querySelectorAll('#{table} tr[tabindex]')].at({at})?.click()"
        ));
        settle(browser);
    };
    let check = |browser: &mut Browser, words: &[&str]| {
        // It is written a little later.
        let begun = Instant::now();
        for word in words {
            while !has_hash(browser, word) {
                assert!(begun.elapsed() < PATIENCE, "{word}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let seen = browser.value(rows);
        let link = written(browser);
        browser.visit("about:blank");
        browser.visit(link.as_str().expect("an address"));
        settle(browser);
        assert_eq!(browser.value(rows), seen, "{words:?}");
        assert_eq!(browser.value("location.href"), link, "{words:?}");
    };
    // The root is closed: nothing is open.
    click(&mut browser, "tree", 0);
    check(&mut browser, &["open=-"]);
    click(&mut browser, "tree", 0);
    // Down to a place, and what is above it closed again.
    browser.value("document.getElementById('hot').click()");
    settle(&mut browser);
    check(&mut browser, &["node="]);
    click(&mut browser, "tree", 1);
    click(&mut browser, "tree", 1);
    check(&mut browser, &["open="]);
    // Metrics, and the only host.
    for _ in 0..2 {
        click(&mut browser, "metrics", 0);
    }
    check(&mut browser, &["parts="]);
    click(&mut browser, "system", 0);
    check(&mut browser, &["closed="]);
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Browsers take no more than some addresses a second.
#[test]
fn who_moves_for_long_is_not_slowed_down() {
    let served = Served::new("serve-moves");
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&served.address);
    settle(&mut browser);
    key(&mut browser, "+");
    browser.value(
        "(async () => {
            for (let turn = 0; turn < 600; turn += 1) {
                const key = turn % 4 < 2 ? 'ArrowRight' : 'ArrowLeft';
                document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
                await new Promise((done) => setTimeout(done, 18));
            }
            document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'm', bubbles: true}));
        })()",
    );
    settle(&mut browser);
    assert!(has_hash(&mut browser, "messages=0"));
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_link_that_is_typed_while_another_is_written_is_followed() {
    let served = Served::new("serve-typed");
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&served.address);
    settle(&mut browser);
    for part in 1..10 {
        // An address of the page is written between the time that the other one is there and that it is heard of.
        browser.value(&format!(
            "{{
                document.getElementById('percent').click();
                const next = new MessageChannel();
                next.port1.onmessage = () => {{ location.hash = 'until=0.00{part}'; }};
                next.port2.postMessage(0);
                for (const begun = performance.now(); performance.now() < begun + 150;);
            }}"
        ));
        settle_on(
            &mut browser,
            &format!("location.hash === '#from=0&until=0.00{part}'"),
        );
        settle(&mut browser);
        assert!(!has_hash(&mut browser, "percent"), "{part}");
    }
}

/// Names of ranks and threads, of a run whose rank 2 has no trace, and whose rank 3 has no thread 1.
#[test]
fn ranks_and_threads_have_names() {
    let served = Served::new("serve-names");
    let mut browser = Browser::start(&served.bench.dir);
    browser.visit(&served.address);
    settle(&mut browser);
    let told = browser.value(
        "(async () => {
            const { know, nameAt, nameOf, positionOf, positionsOf } = await import('./places.js');
            know([[0, 1, 0, 1], [3, 3, 0, 0], [3, 3, 2, 2]]);
            const names = [[0, 1], [1, 1], [2, 3], [0, 3], [1, 2], [0, 5], [4, 4], [4, 5], [6, 6]];
            const all = names.map(([first, last]) => [nameOf(first, last), positionsOf(nameOf(first, last) ?? '')]);
            return JSON.stringify([all, nameAt(5), positionOf('3.2'), positionOf('3.1'), positionsOf('2'), positionsOf('1-x')]);
        })()",
    );
    let expected = r#"[[["0",[0,1]],["0.1",[1,1]],["1",[2,3]],["0-1",[0,3]],["0.1-1.0",[1,2]],["0-3",[0,5]],["3.0",[4,4]],["3",[4,5]],[null,null]],"3.2",5,null,null,null]"#;
    assert_eq!(told, expected);
}
