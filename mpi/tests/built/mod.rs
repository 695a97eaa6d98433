//! The command and the library, and programs that are compiled for it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, io, thread};

/// Where the command and the library are.
pub struct Built {
    pub command: PathBuf,
    pub library: PathBuf,
}

impl Built {
    /// Builds the library and the command, in the target folder of this test.
    pub fn new() -> Self {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let target = scratch.parent().unwrap();
        let said = Command::new(env!("CARGO"))
            .current_dir(package().parent().unwrap())
            // The features that all packages together have, as in `cargo test`.
            .args(["build", "--lib", "--bins", "--examples", "--offline"])
            .arg("--target-dir")
            .arg(target)
            .output()
            .unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        // Programs look for the library by this name.
        let library = scratch.join("mpi");
        fs::create_dir_all(&library).unwrap();
        let link = library.join("libmpi_abi.so.1");
        match std::os::unix::fs::symlink(target.join("debug/libmpi_abi.so"), &link) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => panic!("{error}"),
            _ => Self { command: target.join("debug/tsumugi"), library },
        }
    }

    /// Compiles a program, and returns where it is.
    pub fn compile(&self, source: &Path) -> Result<PathBuf, String> {
        let name = source.file_stem().unwrap().to_str().unwrap();
        self.compile_with(source, name, &[&self.library.join("libmpi_abi.so.1")])
    }

    /// Compiles a program to a file of this name, and links it with these libraries.
    pub fn compile_with(
        &self,
        source: &Path,
        name: &str,
        libraries: &[&Path],
    ) -> Result<PathBuf, String> {
        let program = self.library.join(name);
        let said = Command::new(env::var_os("CC").unwrap_or("cc".into()))
            .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-pthread"])
            .arg("-I")
            .arg(package().join("include"))
            .arg("-I")
            .arg(package().with_file_name("include"))
            .arg(source)
            .args(libraries)
            .args(["-lm", "-ldl"])
            .arg(format!("-Wl,-rpath,{}", self.library.display()))
            .arg("-o")
            .arg(&program)
            .output()
            .expect("there is a C compiler");
        match said.status.success() {
            true => Ok(program),
            false => Err(format!("{name}: {}\n", String::from_utf8_lossy(&said.stderr))),
        }
    }
}

/// The programs of a folder of tests.
pub fn sources(folder: &str) -> Vec<PathBuf> {
    let folder = package().join("tests").join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut sources: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "c")).collect();
    sources.sort();
    sources
}

/// Checks all items, some at the same time, and returns the reasons of those that are wrong.
pub fn each<T: Sync>(items: &[T], check: impl Fn(&T) -> Result<(), String> + Sync) -> String {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(String::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from).clamp(2, 4) {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(reason) = check(item) {
                        wrong.lock().unwrap().push_str(&reason);
                    }
                }
            });
        }
    });
    wrong.into_inner().unwrap()
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
