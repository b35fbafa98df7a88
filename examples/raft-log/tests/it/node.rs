//! Three nodes of openraft in one process, each on its own store.

use crate::machine::{Machine, TypeConfig};
use openraft::error::{InstallSnapshotError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{Config, Raft, SnapshotPolicy};
use raft_log::LogStore;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Only detects hangs.
const HANG: Duration = Duration::from_secs(120);
/// The time between two attempts.
const MOMENT: Duration = Duration::from_millis(20);

/// The error of a call to another node.
type Unanswered<E = openraft::error::Infallible> = RPCError<u64, (), RaftError<u64, E>>;

/// A network of calls within the process.
#[derive(Clone, Default)]
struct Network(Arc<Mutex<BTreeMap<u64, Raft<TypeConfig>>>>);

struct Way {
    network: Network,
    target: u64,
}

impl Way {
    fn node(&self) -> Result<Raft<TypeConfig>, Unreachable> {
        let node = self.network.0.lock().unwrap().get(&self.target).cloned();
        node.ok_or_else(|| Unreachable::new(&io::Error::other("the node is stopped")))
    }

    fn remote<E: std::error::Error>(&self, error: E) -> RPCError<u64, (), E> {
        RPCError::RemoteError(RemoteError::new(self.target, error))
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Way;

    async fn new_client(&mut self, target: u64, (): &()) -> Way {
        Way { network: self.clone(), target }
    }
}

impl RaftNetwork<TypeConfig> for Way {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, Unanswered> {
        self.node()?.append_entries(request).await.map_err(|error| self.remote(error))
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, Unanswered<InstallSnapshotError>> {
        self.node()?.install_snapshot(request).await.map_err(|error| self.remote(error))
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _: RPCOption,
    ) -> Result<VoteResponse<u64>, Unanswered> {
        self.node()?.vote(request).await.map_err(|error| self.remote(error))
    }
}

/// Opens a store. Tasks of a node stopped before may still hold it for a moment.
async fn open(folder: &Path) -> LogStore<TypeConfig> {
    let begin = Instant::now();
    loop {
        match LogStore::open(folder).await {
            Ok(store) => return store,
            Err(error) => assert!(begin.elapsed() < HANG, "{error}"),
        }
        tokio::time::sleep(MOMENT).await;
    }
}

/// A running cluster.
struct Cluster {
    network: Network,
    nodes: Vec<(Raft<TypeConfig>, Machine)>,
}

impl Cluster {
    async fn start(folder: &Path) -> Cluster {
        let config = Config {
            heartbeat_interval: 200,
            election_timeout_min: 1_000,
            election_timeout_max: 2_000,
            // The machines are in memory, so a start applies the whole log.
            snapshot_policy: SnapshotPolicy::Never,
            ..Config::default()
        };
        let config = Arc::new(config.validate().unwrap());
        let (network, mut nodes) = (Network::default(), Vec::new());
        for number in 0..3 {
            let store = open(&folder.join(number.to_string())).await;
            let (config, machine) = (Arc::clone(&config), Machine::default());
            let node = Raft::new(number, config, network.clone(), store, machine.clone());
            let node = node.await.unwrap();
            network.0.lock().unwrap().insert(number, node.clone());
            nodes.push((node, machine));
        }
        Cluster { network, nodes }
    }

    /// Writes texts through the current leader, and waits until every node has applied them. A text
    /// occurs twice if its leader lost the lead after appending it.
    async fn write(&self, texts: impl Iterator<Item = String>) {
        let mut last = None;
        for text in texts {
            last = loop {
                match self.leader().await.client_write(text.clone()).await {
                    Ok(written) => break Some(written.log_id.index),
                    // The nodes may need a moment to agree on another leader.
                    Err(_) => tokio::time::sleep(MOMENT).await,
                }
            };
        }
        for (node, _) in &self.nodes {
            node.wait(Some(HANG)).applied_index_at_least(last, "all texts").await.unwrap();
        }
    }

    async fn leader(&self) -> &Raft<TypeConfig> {
        let wait = self.nodes[0].0.wait(Some(HANG));
        let metrics = wait.metrics(|metrics| metrics.current_leader.is_some(), "a leader").await;
        let leader = metrics.unwrap().current_leader.unwrap();
        &self.nodes[leader as usize].0
    }

    async fn stop(self) {
        for (node, _) in &self.nodes {
            node.shutdown().await.unwrap();
        }
        self.network.0.lock().unwrap().clear();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_has_every_committed_text_after_all_nodes_were_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let text = |number: u64| format!("text {number}");
    let cluster = Cluster::start(folder.path()).await;
    cluster.nodes[0].0.initialize(BTreeSet::from([0, 1, 2])).await.unwrap();
    cluster.write((0..100).map(text)).await;
    cluster.stop().await;

    let cluster = Cluster::start(folder.path()).await;
    cluster.write((100..110).map(text)).await;
    let all: Vec<String> = (0..110).map(text).collect();
    for (_, machine) in &cluster.nodes {
        let mut texts = machine.texts();
        texts.dedup();
        assert_eq!(texts, all);
    }
    cluster.stop().await;
}
