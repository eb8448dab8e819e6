//! Connections of those who have not shown the token: any program of this machine can open one, and say nothing.
//!
//! A time limit would have to be long, for slow lines. So there are a number of them at most, and for a new one
//! the oldest has to go.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// Most of them at a time. A browser opens some for a page.
const STRANGERS: usize = 128;

/// Whether a connection has shown the token.
#[derive(Clone, Debug, Default)]
pub struct Shown(Arc<AtomicBool>);

impl Shown {
    /// It has.
    pub fn show(&self) {
        self.0.store(true, Relaxed);
    }

    fn is_shown(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Takes connections, and ends the oldest of too many strangers.
pub struct Door<L> {
    listener: L,
    /// From old to new. Who is dropped has to go.
    strangers: VecDeque<(Shown, oneshot::Sender<()>)>,
}

impl<L> Door<L> {
    pub fn new(listener: L) -> Door<L> {
        Door {
            listener,
            strangers: VecDeque::new(),
        }
    }

    /// Has one more.
    fn enter<Io>(&mut self, io: Io) -> (Guest<Io>, Shown) {
        self.strangers
            .retain(|(shown, stays)| !shown.is_shown() && !stays.is_closed());
        if self.strangers.len() >= STRANGERS {
            self.strangers.pop_front();
        }
        let (shown, (stays, told)) = (Shown::default(), oneshot::channel());
        self.strangers.push_back((shown.clone(), stays));
        let guest = Guest {
            io,
            shown: shown.clone(),
            told: Some(told),
        };
        (guest, shown)
    }
}

impl<L: Listener> Listener for Door<L> {
    type Io = Guest<L::Io>;
    type Addr = Shown;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (io, _) = self.listener.accept().await;
        self.enter(io)
    }

    fn local_addr(&self) -> io::Result<Shown> {
        Ok(Shown::default())
    }
}

impl<L: Listener> Connected<IncomingStream<'_, Door<L>>> for Shown {
    fn connect_info(stream: IncomingStream<'_, Door<L>>) -> Shown {
        stream.remote_addr().clone()
    }
}

/// A connection.
pub struct Guest<Io> {
    io: Io,
    shown: Shown,
    /// Told when it has to go, unless it has shown the token.
    told: Option<oneshot::Receiver<()>>,
}

impl<Io: AsyncRead + Unpin> AsyncRead for Guest<Io> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.shown.is_shown() {
            self.told = None;
        }
        if let Some(told) = &mut self.told
            && Pin::new(told).poll(context).is_ready()
        {
            // The token may have come meanwhile.
            self.told = None;
            if !self.shown.is_shown() {
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
        }
        Pin::new(&mut self.io).poll_read(context, to)
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for Guest<Io> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, from)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
