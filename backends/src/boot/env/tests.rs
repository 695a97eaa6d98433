use super::*;

fn found(pairs: &[(&str, &str)]) -> Result<BootEnv, EnvError> {
    find(&|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned()))
}

fn tcp(method: BootMethod, rank: u32, size: u32, address: &str) -> Result<BootEnv, EnvError> {
    Ok(BootEnv::Tcp { method, rank, size, addresses: vec![address.to_owned()] })
}

#[test]
fn an_incomplete_environment_names_no_launcher() {
    assert_eq!(found(&[]), Ok(BootEnv::NotARank));
    assert_eq!(found(&[("PMI_RANK", "1"), ("RANK", "0")]), Ok(BootEnv::NotARank));
}

#[test]
fn the_first_launcher_counts_and_a_variable_overrides_it() {
    let all = [
        ("PMI_FD", "5"),
        ("PMI_RANK", "1"),
        ("PMI_SIZE", "2"),
        ("PMIX_NAMESPACE", "prte"),
        ("OMPI_COMM_WORLD_RANK", "1"),
        ("OMPI_COMM_WORLD_SIZE", "2"),
    ];
    let pmi = BootEnv::Pmi { fd: 5, rank: 1, size: 2 };
    assert_eq!(found(&all), Ok(pmi.clone()));
    assert_eq!(found(&all[3..]), Ok(BootEnv::Pmix));
    let with = |word| found(&[&[(BOOT, word)], &all[..]].concat());
    assert_eq!(with("pmix"), Ok(BootEnv::Pmix));
    assert_eq!(with("alone"), Ok(BootEnv::NotARank));
    assert_eq!(with("tcp"), Err(EnvError::Missing { name: MASTER }));
    let value = Excerpt::new("smoke");
    assert_eq!(with("smoke"), Err(EnvError::Choice { name: BOOT, value }));
    let own = [(MASTER, "node1:4000"), (RANK, "1"), (SIZE, "3")];
    let own = [&own, &all[..]].concat();
    assert_eq!(found(&own), tcp(BootMethod::Master("TSUMUGI_RANK"), 1, 3, "node1:4000"));
    let server = [&[(SERVER, "10.0.0.1:4000,[fe80::1%2]:4000")], &own[1..]].concat();
    let Ok(BootEnv::Tcp { method: BootMethod::Server, addresses, .. }) = found(&server) else {
        panic!()
    };
    assert_eq!(addresses.len(), 2);
}

#[test]
fn a_slurm_step_is_distinguished_from_its_batch_script() {
    let batch = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "7")];
    assert_eq!(found(&batch), Ok(BootEnv::NotARank));
    let step = [
        ("SLURM_PROCID", "3"),
        ("SLURM_STEP_NUM_TASKS", "4"),
        ("SLURM_STEP_NODELIST", "n[03-07,9],m"),
        ("SLURM_JOB_ID", "7"),
        ("SLURM_STEP_ID", "2"),
    ];
    assert_eq!(found(&step), tcp(BootMethod::Master("SLURM"), 3, 4, "n03:20219"));
    let hosts = [("a", "a"), ("a,b", "a"), ("a[1]", "a1"), ("x-[10,12]", "x-10")];
    for (list, first) in hosts {
        assert_eq!(first_host(list).as_deref(), Some(first), "{list}");
    }
    for list in ["", "[", "a[", ",", "a b", "$(reboot)"] {
        assert_eq!(first_host(list), None, "{list}");
    }
}

#[test]
fn torchrun_keeps_its_port_where_its_agent_listens() {
    let torch = [
        ("RANK", "1"),
        ("WORLD_SIZE", "2"),
        (MASTER_ADDR, "node1"),
        (MASTER_PORT, "29500"),
        ("TORCHELASTIC_USE_AGENT_STORE", "True"),
    ];
    assert_eq!(found(&torch[..4]), tcp(BootMethod::Master("torchrun"), 1, 2, "node1:29500"));
    assert_eq!(found(&torch), tcp(BootMethod::Master("torchrun"), 1, 2, "node1:29501"));
    let elsewhere = [&[(MASTER, "node2:30000")], &torch[..4]].concat();
    assert_eq!(found(&elsewhere), tcp(BootMethod::Master("torchrun"), 1, 2, "node2:30000"));
}

#[test]
fn a_job_of_one_rank_needs_no_address() {
    let one = [("FLUX_TASK_RANK", "0"), ("FLUX_JOB_SIZE", "1")];
    assert!(matches!(found(&one), Ok(BootEnv::Tcp { size: 1, .. })));
    let two = [("FLUX_TASK_RANK", "0"), ("FLUX_JOB_SIZE", "2")];
    assert_eq!(found(&two), Err(EnvError::Missing { name: MASTER }));
}

#[test]
fn an_error_names_the_variable_and_its_value() {
    let pmi = |rank, size| found(&[("PMI_FD", "5"), ("PMI_RANK", rank), ("PMI_SIZE", size)]);
    assert_eq!(pmi("2", "2"), Err(EnvError::Size { rank: 2, size: 2 }));
    let value = Excerpt::new("-1");
    assert_eq!(pmi("-1", "2"), Err(EnvError::Number { name: "PMI_RANK", value }));
    assert_eq!(found(&[("PMI_FD", "5")]), Err(EnvError::Missing { name: "PMI_RANK" }));
    for master in ["node1", "node1:", "node1:0", "node1:99999", ":4000", "a b:1", "a:1,,b:1"] {
        let found = found(&[(MASTER, master), (RANK, "0"), (SIZE, "2")]);
        let value = Excerpt::new(master);
        assert_eq!(found, Err(EnvError::Choice { name: MASTER, value }), "{master}");
    }
    assert_eq!(limit(&|_| None), Ok(Duration::from_secs(60)));
    assert!(limit(&|_| Some("soon".to_owned())).is_err());
}
