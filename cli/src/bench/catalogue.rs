//! The rows of a figure by groups, and the choice among them.

use crate::failure::Failure;

/// Rows that are measured together or not at all.
#[derive(Debug)]
pub struct Group {
    pub name: &'static str,
    pub rows: &'static [&'static str],
}

/// The rows that the arguments select.
pub fn chosen(only: Option<&str>, catalogue: &[Group]) -> Result<Vec<&'static str>, Failure> {
    let every = catalogue.iter().flat_map(|group| group.rows.iter().map(|row| (group.name, *row)));
    let Some(only) = only else { return Ok(every.map(|(_, row)| row).collect()) };
    let wanted = every.clone().filter(|(group, row)| only == *group || only == *row);
    let wanted: Vec<&str> = wanted.map(|(_, row)| row).collect();
    if wanted.is_empty() {
        let mut known: Vec<&str> = every.flat_map(|(group, row)| [group, row]).collect();
        known.sort_unstable();
        known.dedup();
        let known = known.join(", ");
        return Err(Failure::Usage(format!("--only '{only}': no such row; rows: {known}")));
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOGUE: &[Group] = &[
        Group { name: "direct", rows: &["get8", "put8"] },
        Group { name: "ring", rows: &["push"] },
    ];

    #[test]
    fn a_row_or_a_group_may_be_chosen() {
        assert_eq!(chosen(None, CATALOGUE).unwrap(), ["get8", "put8", "push"]);
        assert_eq!(chosen(Some("direct"), CATALOGUE).unwrap(), ["get8", "put8"]);
        assert_eq!(chosen(Some("push"), CATALOGUE).unwrap(), ["push"]);
    }

    #[test]
    fn an_unknown_row_is_refused_with_the_known_ones() {
        let failure = chosen(Some("get9"), CATALOGUE).unwrap_err();
        assert_eq!(failure.exit_code(), 2);
        let said = failure.to_string();
        assert!(said.contains("'get9'") && said.contains("direct, get8, push, put8, ring"));
    }
}
