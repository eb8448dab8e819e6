//! Two conversations over one link, at the same time: the questions of a tree, and a job.

use std::sync::Arc;

use tokio::sync::mpsc::unbounded_channel;

use crate::job::is_question;
use crate::link::{Arrived, Link, Linked};

/// Why the thread of a job beside questions unwinds.
pub struct Lost(pub String);

/// A link that others use, too.
struct Beside(Arc<dyn Link>);

impl Link for Beside {
    fn agent(&self) -> usize {
        self.0.agent()
    }

    fn agents(&self) -> usize {
        self.0.agents()
    }

    fn send(&self, to: usize, packet: Vec<u8>) {
        self.0.send(to, packet);
    }

    fn lost(&self, why: &str) -> ! {
        std::panic::resume_unwind(Box::new(Lost(why.to_owned())))
    }
}

impl Linked {
    /// The questions, the job, and what takes to each of them what is for it, which is to be run as long
    /// as they last. Where the job cannot go on without another agent, its thread unwinds with [`Lost`] and
    /// the questions go on.
    pub fn split(self) -> (Linked, Linked, impl Future<Output = ()> + Send) {
        let ((questions, asked), (job, told)) = (unbounded_channel(), unbounded_channel());
        let tree = Linked::new(self.link.clone(), asked);
        let beside = Linked::new(Arc::new(Beside(self.link.clone())), told);
        let mut all = self;
        let carry = async move {
            while let Some(arrived) = all.next().await {
                // Who has ended needs nothing any more.
                match arrived {
                    Arrived::Gone(agent) => {
                        let _ = questions.send(Arrived::Gone(agent));
                        let _ = job.send(Arrived::Gone(agent));
                    }
                    Arrived::Packet(from, packet) => {
                        let to = match is_question(&packet) {
                            true => &questions,
                            false => &job,
                        };
                        let _ = to.send(Arrived::Packet(from, packet));
                    }
                }
            }
        };
        (tree, beside, carry)
    }
}
