//! Members that are threads of one process.

use super::*;

#[test]
fn members_of_one_process_share_a_space() {
    let config = SpaceConfig::small();
    let members = Member::threads(3, &config).unwrap();
    for (rank, member) in (0..).zip(&members) {
        assert_eq!((member.rank(), member.size()), (Rank(rank), 3));
        assert_eq!(member.control().state(), RankState::Running);
        assert_eq!(member.control().regions().len(), 2);
    }
    members[2].finish();
    assert_eq!(members[0].control_of(Rank(2)).state(), RankState::Finished);
    let space = members[1].space();
    let exposed = members[1].exposed();
    assert!(space.is_exposed(LocalRank(1), exposed.start(), exposed.bytes() as u64));
    assert!(!space.is_exposed(LocalRank(0), exposed.start(), 1));
    assert!(!space.is_exposed(LocalRank(1), members[1].stacks().0, 1));
    assert!(!space.is_exposed(LocalRank(1), members[1].heap().start(), 1));
}
