//! A barrier of as many simulated nodes as you like: how long it takes them,
//! and how long it takes us.
//!
//! ```text
//! cargo run --release -p tsumugi-core --example barrier -- 663552
//! ```

use std::env;
use tsumugi_core::coll::{StepId, Tree, TreeCollective, WORDS};
use tsumugi_core::mem::{Access, Rank};
use tsumugi_core::sim::{Actor, Net, SimConfig, SimEvent, SimNode};
use tsumugi_core::tag::Tag;
use tsumugi_core::time::Clock;

struct Member {
    tree: Tree,
    climb: TreeCollective,
}

impl Actor for Member {
    fn on_event(&mut self, node: &SimNode<'_>, event: SimEvent) {
        if let SimEvent::Completed(done) = event {
            self.climb.handle_completed(StepId::from_bits(done.tag.to_bits() as u8), done.result);
        }
        let load = |word| node.load(self.tree.key, word as u64 * 8);
        self.climb.handle_words(load, |_, _| 0).expect("the node's own words");
        while let Some((step, op)) = self.climb.poll_op() {
            node.post(&op.tagged(Tag::from_bits(u64::from(step.to_bits()))));
        }
    }
}

fn main() {
    let argument = env::args().nth(1);
    let nodes = argument.map_or(Ok(4096), |text| text.parse()).expect("a number of nodes");
    let start = std::time::Instant::now();
    let config = SimConfig { latency_ns_max: 2_000, reorder: true, ..SimConfig::calm(nodes, 1) };
    let net = Net::new(config);
    let mut members = Vec::new();
    for rank in (0..nodes).map(Rank) {
        let words = net.node(rank).allocate(WORDS as u64 * 8, Access::ReadWrite);
        let key = words.expect("a node's first region").key;
        let tree = Tree { rank, size: nodes, key };
        members.push(Member { tree, climb: TreeCollective::new(tree, 1, 0) });
    }
    let built = start.elapsed();
    let steps = net.run(&mut members);
    let ran = start.elapsed() - built;
    assert!(members.iter().all(|member| member.climb.poll_done() == Some(Ok(0))));
    println!("{nodes} nodes passed the barrier after {:.1} us", net.now().as_ns() as f64 / 1e3);
    println!(
        "built in {:.2} s, {steps} events in {:.2} s: {:.2} million a second",
        built.as_secs_f64(),
        ran.as_secs_f64(),
        steps as f64 / ran.as_secs_f64() / 1e6
    );
}
