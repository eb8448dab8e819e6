//! What a page wants of the recording: the one request that writes, where the user has allowed it.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{Server, guard};
use crate::steer::Steer;

/// Largest request, bytes.
const LARGEST: usize = 8 << 10;

/// Writes it into the control block, or says why not.
pub async fn steer(State(server): State<Arc<Server>>, headers: HeaderMap, body: Bytes) -> Response {
    let Some(directory) = server.steers.clone() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if !guard::is_json_of_a_page(&headers) {
        return StatusCode::FORBIDDEN.into_response();
    }
    if body.len() > LARGEST {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    }
    let said = serde_json::from_slice::<Steer>(&body).map_err(anyhow::Error::from);
    let done = tokio::task::spawn_blocking(move || said?.apply(&directory));
    match done.await {
        Ok(Ok(done)) => told(StatusCode::OK, &json!({"ranks": done.len()})),
        Ok(Err(error)) => {
            let why = json!({"error": format!("{error:#}")});
            told(StatusCode::BAD_REQUEST, &why)
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn told(status: StatusCode, value: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, value.to_string()).into_response()
}
