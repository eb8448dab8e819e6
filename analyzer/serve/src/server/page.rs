//! The page, from the binary.

use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use laggard_report::palette;

const START: &str = include_str!("../client/index.html");
const STYLE: &str = include_str!("../client/style.css");

/// The modules of the page.
const MODULES: [(&str, &str); 24] = [
    ("main.js", include_str!("../client/main.js")),
    ("connection.js", include_str!("../client/connection.js")),
    ("state.js", include_str!("../client/state.js")),
    ("problems.js", include_str!("../client/problems.js")),
    ("places.js", include_str!("../client/places.js")),
    ("units.js", include_str!("../client/units.js")),
    ("cursor.js", include_str!("../client/cursor.js")),
    ("course.js", include_str!("../client/course.js")),
    ("heat.js", include_str!("../client/heat.js")),
    ("line.js", include_str!("../client/line.js")),
    ("live.js", include_str!("../client/live.js")),
    ("steer.js", include_str!("../client/steer.js")),
    ("chain.js", include_str!("../client/chain.js")),
    ("layer.js", include_str!("../client/layer.js")),
    ("messages.js", include_str!("../client/messages.js")),
    ("matrix.js", include_str!("../client/matrix.js")),
    ("path.js", include_str!("../client/path.js")),
    ("pen.js", include_str!("../client/pen.js")),
    ("sampled.js", include_str!("../client/sampled.js")),
    ("save.js", include_str!("../client/save.js")),
    ("tree.js", include_str!("../client/tree.js")),
    ("tables.js", include_str!("../client/tables.js")),
    ("topology.js", include_str!("../client/topology.js")),
    ("whatif.js", include_str!("../client/whatif.js")),
];

/// The page itself.
pub async fn start() -> Html<&'static str> {
    Html(START)
}

/// One of its files.
pub async fn file(Path((_, name)): Path<(String, String)>) -> Response {
    let of_kind =
        |kind: &'static str, text: String| ([(header::CONTENT_TYPE, kind)], text).into_response();
    if name == "style.css" {
        return of_kind("text/css; charset=utf-8", style());
    }
    match MODULES.iter().find(|(module, _)| *module == name) {
        Some((_, text)) => of_kind("text/javascript; charset=utf-8", (*text).to_owned()),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The style, with the colours that all pictures have.
fn style() -> String {
    let colours = palette::properties(&[
        ("computation", palette::COMPUTATION),
        ("communication", palette::COMMUNICATION),
        ("synchronization", palette::SYNCHRONIZATION),
        ("io", palette::IO),
        ("waiting", palette::WAITING),
        // Functions that are told apart, and all others; none has a colour of waiting or communication.
        ("function-0", palette::COMPUTATION),
        ("function-1", palette::OTHER_WAITING),
        ("function-2", palette::SERIES[6]),
        ("function-3", palette::IO),
        ("function-4", palette::SYNCHRONIZATION),
        ("function-5", palette::OTHER),
    ]);
    format!("{colours}\n{STYLE}")
}
