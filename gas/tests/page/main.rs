//! Pages that move, explored exhaustively and run on a network with all faults; by remote atomics
//! alone (`words`) and by messages (`messages`), and both with random programs whose histories
//! are checked (`random`).
//!
//! The tests of each hazard of own, get and put, and the planted defect that proves that the test
//! detects it:
//!
//! | | by atomics | by messages |
//! |---|---|---|
//! | O1 check, then flag | `page_count_apart` | `page_write_uncounted` |
//! | O2 stale reply crosses the stop | `page_install_blind` | `page_stop_forgotten` |
//! | O3 interest after the read | `page_listed_late` | `page_told_unlisted` |
//! | O4 readers not listed | (they need not be) `page_left_unmarked`, `page_marked_late`, `page_header_unread` | `page_readers_unlisted` |
//! | O5 get, and free of the old page | `page_sweep_blind` | `page_freed_early` |
//! | O6 in flight is until remote completion | `page_drain_skipped` | `page_stopped_early`, and a driver with local completion |
//! | O7 the home must not wait | (it does nothing) | a driver that defers in the queue |
//! | O8 reply while it moves | (the entry says so) | `page_told_while_moving` |
//! | O9 two owns at once, own by the owner | programs 5 to 8 of `words` | programs 9 to 12 of `messages` |
//! | O10 roles that fall together | every program: ranks are few | programs 4 to 9 |
//! | O11 requester list, silent eviction | slots of `random`: 1 to 3 | the same |
//! | O12 ranges | owns of up to three pages in `random`; one at a time | the same |
//! | O13 a late message of another life | `page_epoch_unread` | `page_late_stop_believed`, `page_end_of_another_epoch` |
//! | O14 no frame, a death | `NoFrame` in `words`; deaths in `random`, `page_takeover_believes_list` | deaths in both, `page_entry_replaced` |
//! | O15 keys | one region for all, as long as the array lives | the same |
//! | O16 program order | every ULT of `random` waits for each of its calls | the same |
//! | A8 one agent a word | `page_entry_read_plainly` | (none are) |
//! | O17 pins while it moves | pins against relocations, all programs | the same |

mod asks;
mod costs;
mod desk;
mod messages;
mod post;
mod random;
mod ult;
mod words;
#[path = "../../../core/tests/explore/search.rs"]
#[allow(dead_code)]
mod search;
