//! The conversation with one client: questions come as JSON texts with a number, answers go back with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use laggard_comm::Serial;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc;

use super::Server;
use crate::questions::{Question, answer};
use crate::stop::{Stop, Stopped};

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

/// Begins a conversation, unless there are too many.
pub async fn upgrade(State(server): State<Arc<Server>>, socket: WebSocketUpgrade) -> Response {
    let Ok(client) = server.clients.clone().try_acquire_owned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
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

/// The running question of each name; whoever asks anew wants the old answer no more.
#[derive(Default)]
struct Running(HashMap<&'static str, Stop>);

impl Running {
    fn next(&mut self, question: &Question) -> Stop {
        let stop = Stop::default();
        if let Some(old) = self.0.insert(question.name(), stop.clone()) {
            old.stop();
        }
        stop
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.values().for_each(Stop::stop);
    }
}

async fn talk(server: Arc<Server>, mut socket: WebSocket, _client: OwnedSemaphorePermit) {
    server.connected.fetch_add(1, Relaxed);
    let _connected = Connected(server.clone());
    let (answers, mut answered) = mpsc::channel::<String>(WAITING);
    let mut running = Running::default();
    loop {
        tokio::select! {
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => {
                    server.touch();
                    take(&server, &text, &mut running, &answers).await;
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return,
            },
            Some(text) = answered.recv() => {
                let sent = socket.send(Message::Text(text.into()));
                match tokio::time::timeout(PATIENCE, sent).await {
                    Ok(Ok(())) => {}
                    _ => return,
                }
            }
        }
    }
}

/// Begins to work on a question.
async fn take(
    server: &Arc<Server>,
    text: &str,
    running: &mut Running,
    answers: &mpsc::Sender<String>,
) {
    let request: Request = match serde_json::from_str(text) {
        Ok(request) => request,
        Err(error) => {
            let id = serde_json::from_str::<Value>(text).ok();
            let id = id.and_then(|value| value.get("id")?.as_u64());
            let told = json!({"id": id, "error": format!("no question: {error}")});
            // Who sends nonsense faster than it takes answers gets none.
            let _ = answers.try_send(told.to_string());
            return;
        }
    };
    let stop = running.next(&request.question);
    let (server, answers) = (server.clone(), answers.clone());
    tokio::spawn(async move {
        let Ok(_turn) = server.work.clone().acquire_owned().await else {
            return;
        };
        let id = request.id;
        let work = tokio::task::spawn_blocking(move || {
            stop.check()?;
            answer(&Serial, &server.share, &request.question, &stop)
        });
        let told = match work.await {
            Ok(Ok(answer)) => json!({"id": id, "answer": answer}),
            Ok(Err(error)) if error.is::<Stopped>() => json!({"id": id, "stopped": true}),
            Ok(Err(error)) => json!({"id": id, "error": format!("{error:#}")}),
            Err(_) => json!({"id": id, "error": "laggard failed to answer this question"}),
        };
        let _ = answers.send(told.to_string()).await;
    });
}
