//! Producers that are tasks of tokio, each with its share of the messages. It is a separate file
//! because it is used both with the log and with the gathering thread.

use super::Messages;
use crate::Result;
use crate::clock::Clock;
use crate::outcome::{Outcome, Percentiles};
use hdrhistogram::Histogram;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

/// Appends each message with `step`, in one task per producer, and times it.
pub fn by_tasks<S, F>(messages: &Messages, step: S) -> Result<Outcome>
where
    S: Fn(&[u8]) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let (messages, step) = (Arc::new(messages.clone()), Arc::new(step));
    runtime.block_on(async {
        let clock = Clock::start()?;
        let start =
            |producer| tokio::spawn(produce(Arc::clone(&messages), producer, Arc::clone(&step)));
        let producers: Vec<_> = (0..messages.work.producers).map(start).collect();
        let mut all = Histogram::new(3)?;
        for producer in producers {
            all.add(producer.await??)?;
        }
        let outcome = clock.stop(messages.total_bytes(), messages.work.messages)?;
        Ok(Outcome { latency_ns: Percentiles::of(&all), ..outcome })
    })
}

async fn produce<S, F>(
    messages: Arc<Messages>,
    producer: u32,
    step: Arc<S>,
) -> Result<Histogram<u64>>
where
    S: Fn(&[u8]) -> F,
    F: Future<Output = Result<()>>,
{
    let mut histogram = Histogram::new(3)?;
    for message in messages.share(producer) {
        let begin = Instant::now();
        step(message).await?;
        histogram.record(begin.elapsed().as_nanos() as u64)?;
    }
    Ok(histogram)
}
