//! The tree of call paths and the matrix of ranks, in the browser.

use super::*;

/// Amounts of a node, by their names in the report.
const AMOUNTS: [&str; 5] = ["calls", "time_s", "waiting_s", "caused_s", "bytes"];

/// A number of the report as a whole one: seconds as ns.
fn whole(name: &str, value: &Value) -> i64 {
    let value = value.as_f64().unwrap_or_else(|| panic!("{name}: {value}"));
    let unit = if name.ends_with("_s") { 1e9 } else { 1.0 };
    (value * unit).round() as i64
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Each row's level, and its amounts: with what is below, and without.
fn rows(browser: &mut Browser) -> Vec<(usize, Vec<(f64, f64)>)> {
    let rows = browser.value(
        "[...document.querySelectorAll('#calls tbody tr')].map((row) => [Number(row.dataset.level), \
         [...row.querySelectorAll('td.number')].map((cell) => [Number(cell.dataset.value), \
         Number(cell.dataset.own)])])",
    );
    serde_json::from_value(rows).expect("rows")
}

/// What is shown of the tree is what the report says, sums of parts are their whole, and the whole is
/// the run.
pub fn tree_adds_up(browser: &mut Browser, report: &Value) {
    let nodes = list(&report["call_tree"]["nodes"]);
    let rows = rows(browser);
    assert!(
        nodes.len() > 5 && rows.len() == nodes.len(),
        "{}",
        rows.len()
    );
    for (at, name) in AMOUNTS.into_iter().enumerate() {
        let mut parts = vec![0i64; nodes.len()];
        for (number, ((level, cells), node)) in rows.iter().zip(nodes).enumerate().rev() {
            let shown = whole(name, &Value::from(cells[at].0));
            let own = whole(name, &Value::from(cells[at].1));
            let amount = &node[name];
            assert_eq!(shown, whole(name, &amount["inclusive"]), "{node:#}");
            assert_eq!(own, whole(name, &amount["exclusive"]), "{node:#}");
            assert_eq!(shown, own + parts[number], "{name}: {node:#}");
            match node["parent"].as_u64() {
                Some(parent) => {
                    assert_eq!(*level, rows[parent as usize].0 + 1);
                    parts[parent as usize] += shown;
                }
                None => assert_eq!((number, *level), (0, 1)),
            }
            spread_fits(report, name, amount, shown);
        }
    }
    let whole_of = |name: &str| whole(name, &nodes[0][name]["inclusive"]);
    let sums = &report["location_sums"];
    assert_eq!(whole_of("calls"), whole("", &report["run"]["operations"]));
    assert_eq!(whole_of("waiting_s"), whole("_s", &sums["wait_s"]));
    assert!(whole_of("bytes") >= whole("", &report["messages"]["bytes"]));
    // Each time is rounded to ns, and causes are kept in parts of ns.
    let rounding = 1000 * report["run"]["ranks"].as_i64().expect("ranks");
    let more = whole_of("time_s") - whole("_s", &sums["wall_s"]);
    assert!(more.abs() <= rounding, "{more} ns");
    let untraced = whole("_s", &report["untraced_s"]);
    let missing = whole_of("waiting_s") - whole_of("caused_s") - untraced;
    assert!((0..rounding).contains(&missing), "{missing} ns");
}

/// Least, median and most are those of single ranks, as far as they are listed.
fn spread_fits(report: &Value, name: &str, amount: &Value, all: i64) {
    let spread = &amount["ranks"];
    assert_eq!(spread.is_null(), all == 0, "{amount:#}");
    if spread.is_null() || report["call_tree"]["ranks_per_class"] != 1 {
        return;
    }
    let of_ranks = list(&spread["classes"]).iter();
    let mut of_ranks: Vec<i64> = of_ranks.map(|value| whole(name, value)).collect();
    assert_eq!(of_ranks.iter().sum::<i64>(), all, "{amount:#}");
    let of = |key: &str| whole(name, &spread[key]);
    let most = spread["max_rank"].as_u64().expect("a rank") as usize;
    assert_eq!(of_ranks[most], of("max"), "{amount:#}");
    of_ranks.sort_unstable();
    let (first, last) = (of_ranks[0], of_ranks[of_ranks.len() - 1]);
    assert_eq!((first, last), (of("min"), of("max")), "{amount:#}");
    let half = of_ranks.len() / 2;
    assert!(
        (of_ranks[half - 1]..=of_ranks[half]).contains(&of("median")),
        "{amount:#}"
    );
}

/// Rows open and close by keyboard, and the spread shown is the one chosen.
pub fn tree_opens_by_keyboard(browser: &mut Browser, report: &Value) {
    let nodes = list(&report["call_tree"]["nodes"]).len();
    let shown = "document.querySelectorAll('#calls tbody tr:not([hidden])').length";
    let focus = "document.activeElement.rowIndex";
    let open = "document.activeElement.getAttribute('aria-expanded')";
    browser.value("document.querySelector('#calls tbody tr').focus()");
    assert_eq!(browser.value(open), "true");
    browser.press("ArrowLeft");
    assert_eq!(
        (browser.value(open), browser.value(shown)),
        ("false".into(), 1.into())
    );
    browser.press("ArrowRight");
    assert_eq!(
        (browser.value(open), browser.value(focus)),
        ("true".into(), 1.into())
    );
    browser.press("ArrowRight");
    assert_eq!(browser.value(focus), 2);
    let level = "document.activeElement.getAttribute('aria-level')";
    assert_eq!(browser.value(level), "2");
    browser.press("ArrowLeft");
    browser.press("ArrowLeft");
    assert_eq!(browser.value(focus), 1);
    browser.press("End");
    let last = "[...document.querySelectorAll('#calls tbody tr:not([hidden])')].pop().rowIndex";
    assert_eq!(browser.value(focus), browser.value(last));
    browser.press("Home");
    browser.press("ArrowDown");
    browser.press("ArrowUp");
    assert_eq!(browser.value(focus), 1);
    browser.value("document.querySelector('form[data-of-tree] button').click()");
    assert_eq!(browser.value(shown), nodes);
    // Tab leads out: one row alone takes part in it.
    assert_eq!(count(browser, "#calls tbody tr[tabindex='0']"), 1);
    let spreads = "[...new Set([...document.querySelectorAll('#calls td.spread:not([hidden])')] \
                   .map((cell) => cell.dataset.spread))]";
    assert_eq!(browser.value(spreads), serde_json::json!(["time"]));
    browser.value(
        "(() => { const picker = document.querySelector('form[data-of-tree] select'); \
         picker.value = 'caused'; picker.dispatchEvent(new Event('change')); })()",
    );
    assert_eq!(browser.value(spreads), serde_json::json!(["caused"]));
}

/// The cells are all messages, and all waiting for somebody; a row tells about what is below the mouse.
pub fn matrix_is_complete(browser: &mut Browser, report: &Value) {
    let cells = list(&report["rank_matrix"]["cells"]);
    let sum = |name: &str| -> i64 { cells.iter().map(|cell| whole(name, &cell[name])).sum() };
    assert_eq!(sum("messages"), whole("", &report["messages"]["messages"]));
    assert_eq!(sum("bytes"), whole("", &report["messages"]["bytes"]));
    let waiting = whole("_s", &report["location_sums"]["wait_s"]);
    assert!(
        sum("waiting_s") > 0 && sum("waiting_s") <= waiting,
        "{waiting}"
    );
    let text = browser.value("document.querySelector('figure.matrix').dataset.cells");
    let text = text.as_str().expect("cells");
    let shown = text.split(',').map(|cell| -> Vec<i64> {
        let numbers = cell
            .split(' ')
            .map(|number| number.parse().expect("a number"));
        numbers.collect()
    });
    let names = ["from", "to", "messages", "bytes", "waiting_s"];
    let expected = cells
        .iter()
        .map(|cell| names.map(|name| whole(name, &cell[name])).to_vec());
    assert_eq!(shown.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let ranks = report["rank_matrix"]["ranks_per_cell"]
        .as_u64()
        .expect("ranks");
    // The longest first. A cell may lie between the points that a mouse can be at.
    let mut cells = cells.to_vec();
    cells.sort_by_key(|cell| std::cmp::Reverse(whole("_s", &cell["waiting_s"])));
    let place = |cell: &Value, name: &str| cell[name].as_u64().expect("a rank") / ranks;
    let places: Vec<[u64; 2]> = cells
        .iter()
        .map(|cell| [place(cell, "to"), place(cell, "from")])
        .collect();
    let told = browser.value(&format!(
        "(() => {{ const figure = document.querySelector('figure.matrix'); \
         const ground = figure.querySelector('canvas, .ground').getBoundingClientRect(); \
         const size = Number(figure.dataset.rows); \
         const point = (start, length, cell) => {{ \
           const [from, to] = [start + cell * length / size, start + (cell + 1) * length / size]; \
           return Math.ceil(from + 0.01) < to - 0.01 ? Math.ceil(from + 0.01) : undefined; }}; \
         const points = {places:?}.map(([column, row]) => [ \
           point(ground.left, ground.width, column), point(ground.top, ground.height, row)]); \
         const at = points.findIndex(([x, y]) => x !== undefined && y !== undefined); \
         figure.dispatchEvent(new MouseEvent('mousemove', {{ \
           clientX: points[at][0], clientY: points[at][1] }})); \
         return [at, document.querySelector('form[data-of-matrix] output').textContent]; }})()"
    ));
    let longest = &cells[told[0].as_u64().expect("a cell") as usize];
    let told = &told[1];
    let told = told.as_str().expect("a text");
    let messages = format!(
        ": {} messages, {} bytes; waited ",
        longest["messages"], longest["bytes"]
    );
    let first = format!("{} to ", longest["from"]);
    assert!(told.contains(&messages), "{told}: {longest}");
    assert!(
        ranks > 1 || told.starts_with(&format!("rank {first}")),
        "{told}: {longest}"
    );
}

/// Cells that the canvas shows for what is chosen.
pub fn points_of_canvas(browser: &mut Browser, metric: &str) -> u64 {
    let points = browser.value(&format!(
        "(() => {{ const picker = document.querySelector('form[data-of-matrix] select'); \
         picker.value = {metric:?}; picker.dispatchEvent(new Event('change')); \
         const canvas = document.querySelector('figure.matrix canvas'); \
         const copy = new OffscreenCanvas(canvas.width, canvas.height) \
           .getContext('2d', {{ willReadFrequently: true }}); \
         copy.drawImage(canvas, 0, 0); \
         const points = copy.getImageData(0, 0, canvas.width, canvas.height).data; \
         return points.filter((value, at) => at % 4 === 3 && value > 0).length; }})()"
    ));
    points.as_u64().expect("a number")
}
