//! A job whose agents are threads of this process.

use laggard_comm::Job;
use laggard_overlay::{LinkJob, link};

/// Runs the work of so many agents, each in a thread. The results are in the order of the agents.
///
/// # Panics
/// If one of them does. The others end, too.
pub fn agents<R: Send>(count: usize, work: impl Fn(&dyn Job) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads = link::threads(count).into_iter().map(|linked| {
            scope.spawn(move || {
                let job = LinkJob::new(linked);
                let result = work(&job);
                // Nobody leaves while others need it.
                job.all_gather(Vec::new());
                (result, job)
            })
        });
        let threads: Vec<_> = threads.collect();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        let results = ended
            .into_iter()
            .map(|ended| ended.expect("an agent failed").0);
        results.collect()
    })
}
