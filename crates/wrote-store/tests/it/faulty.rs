//! A store that fails like networks and servers do: it refuses requests, is slow, loses answers,
//! and interrupts transfers.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result,
};
use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The fault that a request meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// The request is refused and has no effect.
    Refuse,
    /// The request succeeds, but its answer is lost.
    LoseAnswer,
    /// The request succeeds after some time.
    Slow,
    /// The request is never answered.
    Hang,
    /// The body of the answer is interrupted, or ends early.
    BreakOff,
    /// The body of the answer has a wrong byte.
    Change,
    /// An object is replaced, although the request was to create it.
    Replace,
    /// The server does not know `If-None-Match`.
    NotImplemented,
}

type Plan = Box<dyn FnMut(u64) -> Fault + Send>;

/// A store in which a plan determines the fault of each request, by the number of the request.
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    requests: AtomicU64,
    /// The number of requests for a part of an object, and for a whole object.
    parts: AtomicU64,
    wholes: AtomicU64,
    plan: Mutex<Plan>,
}

impl FaultyStore {
    pub fn new(
        inner: Arc<dyn ObjectStore>,
        plan: impl FnMut(u64) -> Fault + Send + 'static,
    ) -> Arc<FaultyStore> {
        let plan: Mutex<Plan> = Mutex::new(Box::new(plan));
        let [requests, parts, wholes] = [(); 3].map(|()| AtomicU64::new(0));
        Arc::new(FaultyStore { inner, requests, parts, wholes, plan })
    }

    /// Returns the number of requests for a part of an object, and for a whole one, since the last
    /// call.
    pub fn take_gets(&self) -> (u64, u64) {
        (self.parts.swap(0, Ordering::SeqCst), self.wholes.swap(0, Ordering::SeqCst))
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    async fn meet(&self) -> Result<Fault> {
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        let fault = (self.plan.lock().unwrap())(number);
        match fault {
            Fault::Refuse => return Err(lost("503 Slow Down")),
            Fault::NotImplemented => {
                return Err(lost("Server returned non-2xx status code: 501 Not Implemented: "));
            }
            Fault::Slow => tokio::time::sleep(Duration::from_millis(20)).await,
            Fault::Hang => std::future::pending().await,
            _ => {}
        }
        Ok(fault)
    }
}

fn lost(words: &str) -> Error {
    Error::Generic { store: "faulty", source: words.to_owned().into() }
}

fn answered<T>(fault: Fault, answer: Result<T>) -> Result<T> {
    match fault {
        Fault::LoseAnswer => Err(lost("connection reset by peer")),
        _ => answer,
    }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyStore")
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyStore")
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        to: &Path,
        bytes: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        let fault = self.meet().await?;
        if fault == Fault::Replace {
            options.mode = PutMode::Overwrite;
        }
        answered(fault, self.inner.put_opts(to, bytes, options).await)
    }

    async fn put_multipart_opts(
        &self,
        to: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let fault = self.meet().await?;
        answered(fault, self.inner.put_multipart_opts(to, options).await)
    }

    async fn get_opts(&self, from: &Path, options: GetOptions) -> Result<GetResult> {
        let fault = self.meet().await?;
        let is_head = options.head;
        match (is_head, &options.range) {
            (true, _) => {}
            (false, Some(_)) => _ = self.parts.fetch_add(1, Ordering::SeqCst),
            (false, None) => _ = self.wholes.fetch_add(1, Ordering::SeqCst),
        }
        let found = answered(fault, self.inner.get_opts(from, options).await)?;
        if is_head || !matches!(fault, Fault::BreakOff | Fault::Change) {
            return Ok(found);
        }
        let (meta, range, attributes) =
            (found.meta.clone(), found.range.clone(), found.attributes.clone());
        let extensions = found.extensions.clone();
        let mut bytes = found.bytes().await?.to_vec();
        let half = bytes.len() / 2;
        let stream = match fault {
            Fault::Change => {
                bytes[half] ^= 1;
                stream::iter(vec![Ok(Bytes::from(bytes))]).boxed()
            }
            _ => {
                bytes.truncate(half);
                stream::iter(vec![Ok(Bytes::from(bytes)), Err(lost("broken pipe"))]).boxed()
            }
        };
        let payload = GetResultPayload::Stream(stream);
        Ok(GetResult { payload, meta, range, attributes, extensions })
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        let fault = (self.plan.lock().unwrap())(number);
        let listed = self.inner.list(prefix);
        match fault {
            Fault::Hang => stream::pending().boxed(),
            Fault::Refuse | Fault::LoseAnswer => stream::iter([Err(lost("403 Forbidden"))]).boxed(),
            Fault::BreakOff => {
                listed.take(1).chain(stream::iter([Err(lost("broken pipe"))])).boxed()
            }
            _ => listed.boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let fault = self.meet().await?;
        answered(fault, self.inner.copy_opts(from, to, options).await)
    }
}

/// Returns the number of objects in a store.
pub async fn count(store: &dyn ObjectStore) -> usize {
    store.list(None).try_collect::<Vec<_>>().await.unwrap().len()
}
