//! The conversation with one client: questions come as JSON texts with a number, answers go back with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Result, bail};
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use super::{CLIENTS, Server};
use crate::questions::{Question, answer};
use crate::shares::Shares;

/// Largest question, bytes.
const QUESTION: usize = 8 << 10;
/// Answers that wait for a slow client.
const WAITING: usize = 16;
/// A client that takes longer to take an answer is gone.
const PATIENCE: Duration = Duration::from_secs(20);

/// A question, and the number that its answer has.
#[derive(Deserialize)]
struct Request {
    id: u64,
    #[serde(flatten)]
    question: Question,
}

impl Request {
    fn read(text: &str) -> Result<Request> {
        let told: Value = serde_json::from_str(text)?;
        let request = Request::deserialize(&told)?;
        // Serde has no such check beside a field that is flattened.
        let known = serde_json::to_value(&request.question)?;
        let fields = told.as_object().into_iter().flatten();
        for (field, _) in fields.filter(|(field, _)| *field != "id") {
            if known.get(field).is_none() {
                bail!("unknown field `{field}`");
            }
        }
        Ok(request)
    }
}

/// Begins a conversation, unless there are too many. Scripts of a page are not told why a conversation is refused:
/// they ask again without one, and get the same answer.
pub async fn upgrade(
    State(server): State<Arc<Server>>,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let Ok(client) = server.clients.clone().try_acquire_owned() else {
        let told = format!(
            "{CLIENTS} pages are open, more cannot be: close one, and load this page again"
        );
        return (StatusCode::SERVICE_UNAVAILABLE, told).into_response();
    };
    let socket = match socket {
        Ok(socket) => socket,
        Err(refused) => return refused.into_response(),
    };
    let socket = socket.max_message_size(QUESTION).max_frame_size(QUESTION);
    socket.on_upgrade(move |socket| talk(server, socket, client))
}

/// Counts a client as long as it is there.
struct Connected(Arc<Server>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connected.fetch_sub(1, Relaxed);
        self.0.touch();
    }
}

/// The running question of each name, with its number; whoever asks anew wants the old answer no more.
#[derive(Default)]
struct Running(HashMap<&'static str, (u64, AbortHandle)>);

impl Running {
    /// Replaces a question; returns the number of the old one if it is stopped by that.
    fn next(&mut self, name: &'static str, new: (u64, AbortHandle)) -> Option<u64> {
        let (number, old) = self.0.insert(name, new)?;
        let is_stopped = !old.is_finished();
        old.abort();
        is_stopped.then_some(number)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.values().for_each(|(_, work)| work.abort());
    }
}

async fn talk(server: Arc<Server>, mut socket: WebSocket, _client: OwnedSemaphorePermit) {
    server.connected.fetch_add(1, Relaxed);
    let _connected = Connected(server.clone());
    let (answers, mut answered) = mpsc::channel::<String>(WAITING);
    let mut running = Running::default();
    let mut news = server.shares.news();
    // Who comes is told at once, if there is anything to tell.
    news.mark_changed();
    loop {
        tokio::select! {
            told = news.changed() => {
                // They go as long as the server.
                let Ok(()) = told else { return };
                let told = news.borrow_and_update().as_ref().map(|news| json!({"news": news}).to_string());
                if let Some(text) = told
                    && send(&mut socket, text).await.is_none()
                {
                    return;
                }
            }
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => {
                    server.touch();
                    // Whoever does not take this is not heard any further.
                    if let Some(text) = take(&server, &text, &mut running, &answers)
                        && send(&mut socket, text).await.is_none()
                    {
                        return;
                    }
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return,
            },
            Some(text) = answered.recv() => {
                if send(&mut socket, text).await.is_none() {
                    return;
                }
            }
        }
    }
}

/// Sends a text; `None` if the client is gone.
async fn send(socket: &mut WebSocket, text: String) -> Option<()> {
    let sent = socket.send(Message::Text(text.into()));
    tokio::time::timeout(PATIENCE, sent).await.ok()?.ok()
}

/// Begins to work on a question. Returns what is told at once: that it is none, or that a former one is stopped.
fn take(
    server: &Arc<Server>,
    text: &str,
    running: &mut Running,
    answers: &mpsc::Sender<String>,
) -> Option<String> {
    let request = match Request::read(text) {
        Ok(request) => request,
        Err(error) => {
            let id = serde_json::from_str::<Value>(text).ok();
            let id = id.and_then(|value| value.get("id")?.as_u64());
            let told = json!({"id": id, "error": format!("no question: {error}")});
            return Some(told.to_string());
        }
    };
    let name = request.question.name();
    let (server, answering) = (server.clone(), answers.clone());
    let work = tokio::spawn(async move {
        let id = request.id;
        let told = match ask(server, request.question).await {
            (number, Ok(answer)) => json!({"id": id, "number": number, "answer": answer}),
            (number, Err(error)) => {
                json!({"id": id, "number": number, "error": format!("{error:#}")})
            }
        };
        let _ = answering.send(told.to_string()).await;
    });
    let old = running.next(name, (request.id, work.abort_handle()))?;
    Some(json!({"id": old, "stopped": true}).to_string())
}

/// The answer of all agents, and the number of the share that it is of. If this is dropped, they stop.
async fn ask(server: Arc<Server>, question: Question) -> (u64, Result<Value>) {
    // Neither is ever closed.
    let replay = match question {
        Question::WhatIf(_) => server.replays.clone().acquire_owned().await.ok(),
        _ => None,
    };
    let turn = server.work.clone().acquire_owned().await.ok();
    let (number, share) = server.shares.newest();
    let packed = match Shares::packed(number, &question) {
        Ok(packed) => packed,
        Err(error) => return (number, Err(error)),
    };
    let reply = server.head.ask(&server.stream, &packed).await;
    let made = tokio::task::spawn_blocking(move || {
        // What is begun goes on if it is stopped: until it ends, nobody else has its turn.
        let _turns = (replay, turn);
        answer(&share, &question, reply)
    });
    let failed = |_| bail!("laggard failed to answer this question");
    (number, made.await.unwrap_or_else(failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else a page of another version has answers to other questions than it asked.
    #[test]
    fn fields_that_no_question_has_are_refused() {
        let read = |text| Request::read(text).map(|request| request.question.name());
        let right = r#"{"id": 7, "ask": "line", "width": 9, "from_s": 0.25, "last": null}"#;
        assert_eq!(read(right).unwrap(), "line");
        for (wrong, why) in [
            (
                r#"{"id": 7, "ask": "line", "width": 9, "form_s": 0}"#,
                "unknown field `form_s`",
            ),
            (
                r#"{"id": 7, "ask": "overview", "width": 9}"#,
                "unknown field `width`",
            ),
            (
                r#"{"id": 7, "ask": "lines", "width": 9}"#,
                "unknown variant `lines`",
            ),
            (r#"{"ask": "overview"}"#, "missing field `id`"),
            ("[7]", "invalid type"),
        ] {
            let told = read(wrong).unwrap_err().to_string();
            assert!(told.contains(why), "{wrong}: {told}");
        }
    }
}
