//! Tests that a machine cannot run: a line in the output, with the script that runs
//! them.

use std::io::Write;

/// Writes one line, past the capture of test runners: what was left out, why, and
/// which script of `ci/` runs it.
///
/// # Panics
///
/// If `CI` is `true`, unless the script is one of `TSUMUGI_TEST_STEPS`, the scripts that a
/// run of CI has as steps of their own.
pub fn left_out(what: &str, why: &str, script: &str) {
    let line = format!("left out: {what}: {why} ({script} runs it)\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
    let of = |name| std::env::var(name).unwrap_or_default();
    assert!(!is_failure(&of("CI"), &of("TSUMUGI_TEST_STEPS"), script), "{}", line.trim_end());
}

fn is_failure(ci: &str, steps: &str, script: &str) -> bool {
    ci == "true" && !steps.split_whitespace().any(|step| step == script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ci_leaves_out_only_tests_of_its_other_steps() {
        assert!(!is_failure("", "", "ci/ofi.sh"));
        assert!(!is_failure("false", "", "ci/ofi.sh"));
        assert!(is_failure("true", "", "ci/ofi.sh"));
        assert!(is_failure("true", "ci/verbs.sh", "ci/ofi.sh"));
        assert!(!is_failure("true", "ci/verbs.sh ci/ofi.sh", "ci/ofi.sh"));
    }
}
