//! The queues of jobs.

use super::*;

fn drained(queue: &mut OpQueue, jobs: &mut [PendingOp]) -> Vec<usize> {
    core::iter::from_fn(|| queue.pop(jobs)).collect()
}

#[test]
fn a_queue_holds_a_job_once_and_keeps_its_order() {
    let (mut jobs, mut queue) = (vec![PendingOp::FREE; 4], OpQueue::EMPTY);
    for round in 0..2 {
        [1, 3, 1, 0].into_iter().for_each(|job| queue.push(&mut jobs, job));
        assert!(jobs[1].is_queued && !jobs[2].is_queued);
        assert_eq!(drained(&mut queue, &mut jobs), [1, 3, 0], "round {round}");
        assert!(jobs.iter().all(|job| !job.is_queued));
    }
    // `push_front` puts a job before all others, unless it is in the queue.
    [1, 3].into_iter().for_each(|job| queue.push(&mut jobs, job));
    [2, 3].into_iter().for_each(|job| queue.push_front(&mut jobs, job));
    queue.push(&mut jobs, 0);
    assert_eq!(drained(&mut queue, &mut jobs), [2, 1, 3, 0]);
    queue.push_front(&mut jobs, 2);
    queue.push(&mut jobs, 1);
    assert_eq!(drained(&mut queue, &mut jobs), [2, 1]);
}
