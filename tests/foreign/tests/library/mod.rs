//! The libraries that C programs use, and their headers.
#![allow(dead_code, reason = "each test uses some of it")]

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};
use tsumugi_conformance::left_out;

/// Compares a header with the one that cbindgen makes of the sources of a package, by the
/// header's own configuration.
pub fn header(library: &str, package: &str, sources: &[&str]) {
    let config =
        cbindgen::Config::from_file(root().join(format!("include/{library}.toml"))).unwrap();
    let builder =
        sources.iter().fold(cbindgen::Builder::new().with_config(config), |builder, name| {
            builder.with_src(path(package, name))
        });
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let committed = root().join(format!("include/{library}.h"));
    if fs::read_to_string(&committed).unwrap_or_default() != made {
        let fresh = scratch().join(format!("{library}.h"));
        fs::write(&fresh, &made).unwrap();
        panic!("include/{library}.h is stale: cp {} {}", fresh.display(), committed.display());
    }
    for name in sources {
        for exported in exports(&source(package, name)) {
            assert!(made.contains(&format!("{exported}(")), "{exported} is not in the header");
        }
    }
}

/// Compiles a C program of this folder; returns its path.
pub fn compile(library: &Path, program: &str, link: &str) -> PathBuf {
    let source = root().join(format!("tests/foreign/{program}.c"));
    compile_source(library, &source, program, link)
}

/// Compiles a C program that does nothing but name these functions.
pub fn compile_names(library: &Path, names: &[String], link: &str) -> PathBuf {
    let list: Vec<String> = names.iter().map(|name| format!("(function){name}")).collect();
    let program = format!(
        "#include <acp.h>\n#include <tsumugi.h>\ntypedef void (*function)(void);\n\
         function volatile all[] = {{\n{}\n}};\nint main(void) {{ return !all[0]; }}\n",
        list.join(",\n")
    );
    let source = scratch().join("names.c");
    fs::write(&source, program).unwrap();
    compile_source(library, &source, "names", link)
}

/// Compiles a C++ program of this folder; returns its path.
pub fn compile_cpp(library: &Path, program: &str, link: &str) -> PathBuf {
    let source = root().join(format!("tests/foreign/{program}.cpp"));
    compile_cpp_source(library, &source, program, link)
}

/// Compiles a C++ program of this text; returns its path.
pub fn compile_cpp_text(library: &Path, text: &str, program: &str, link: &str) -> PathBuf {
    let source = scratch().join(format!("{program}.cpp"));
    fs::write(&source, text).unwrap();
    compile_cpp_source(library, &source, program, link)
}

fn compile_cpp_source(library: &Path, source: &Path, program: &str, link: &str) -> PathBuf {
    let compiler = env::var_os("CXX").unwrap_or("c++".into());
    compile_by(compiler, "-std=c++17", library, source, &format!("{program}-cpp-{link}"), link)
}

fn compile_source(library: &Path, source: &Path, program: &str, link: &str) -> PathBuf {
    let compiler = env::var_os("CC").unwrap_or("cc".into());
    compile_by(compiler, "-std=c11", library, source, &format!("{program}-{link}"), link)
}

fn compile_by(
    compiler: OsString,
    standard: &str,
    library: &Path,
    source: &Path,
    name: &str,
    link: &str,
) -> PathBuf {
    let compiled = scratch().join(name);
    let said = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-g", "-pthread"])
        .arg("-D_GNU_SOURCE")
        .arg("-I")
        .arg(root().join("include"))
        .arg(source)
        .arg(library.join(link))
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .args(["-lm", "-ldl", "-o"])
        .arg(&compiled)
        .output()
        .expect("there is a compiler");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    compiled
}

/// A source of a package.
pub fn source(package: &str, name: &str) -> String {
    let path = path(package, name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn path(package: &str, name: &str) -> PathBuf {
    root().join(format!("{package}/src/{name}.rs"))
}

/// Runs the documented command, in a target folder of its own; returns the folder of the
/// libraries.
pub fn build() -> PathBuf {
    // The tests' other flags are not meant for the library.
    let flags = if cfg!(tsumugi_delays) { "--cfg tsumugi_delays" } else { "" };
    build_package("tsumugi-library", "libtsumugi.so", flags)
}

/// Builds MassiveThreads' library; returns its folder.
pub fn build_myth() -> PathBuf {
    build_package("tsumugi-myth", "libmyth.so", "")
}

fn build_package(package: &str, library: &str, flags: &str) -> PathBuf {
    let target = scratch().join("target");
    let built = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["build", "--package", package, "--offline", "--target-dir"])
        .arg(&target)
        // The static library with all of its debugging information is so long that a link
        // of a program takes seconds.
        .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
        .env("RUSTFLAGS", flags)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let built = target.join("debug");
    // Programs look for the library by this name. Another test may have made the link.
    match std::os::unix::fs::symlink(library, built.join(format!("{library}.0"))) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => panic!("{error}"),
        _ => built,
    }
}

/// Compiles a program of MassiveThreads, with the header that has its functions.
pub fn compile_for_myth(library: &Path, program: &str) -> PathBuf {
    let compiled = scratch().join(format!("{program}-libmyth"));
    let said = Command::new(env::var_os("CC").unwrap_or("cc".into()))
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-g", "-pthread"])
        .arg("-D_GNU_SOURCE")
        .arg("-I")
        .arg(root().join("include/compat"))
        .arg(root().join(format!("tests/foreign/{program}.c")))
        .arg("-L")
        .arg(library)
        .arg("-lmyth")
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .arg("-o")
        .arg(&compiled)
        .output()
        .expect("there is a C compiler");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    compiled
}

/// Runs a program as `size` ranks without a launcher, over libfabric; the last rank is on
/// another node than the others. Leaves the run out where there is no libfabric.
pub fn on_two_nodes(program: &Path, size: u32, words: &[&str]) {
    // The port was free a moment ago.
    let master = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let start = |rank: u32| {
        Command::new("timeout")
            .arg("120")
            .arg(program)
            .args(words)
            .env("TSUMUGI_RANK", rank.to_string())
            .env("TSUMUGI_SIZE", size.to_string())
            .env("TSUMUGI_NODE", format!("node {}", (rank + 1) / size))
            .env("TSUMUGI_MASTER", master.to_string())
            .env("TSUMUGI_SECRET", "the secret of this test's job")
            .env("TSUMUGI_INTERFACE", "127.0.0.1")
            .env("TSUMUGI_PROVIDER", "tcp;ofi_rxm")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a rank that starts")
    };
    let ranks: Vec<_> = (0..size).map(start).collect();
    let ends: Vec<_> = ranks.into_iter().map(|rank| rank.wait_with_output().unwrap()).collect();
    let said = ends.iter().flat_map(|end| [&end.stdout, &end.stderr]);
    let text: String = said.map(|said| String::from_utf8_lossy(said)).collect();
    if text.contains("this machine has no") {
        left_out(&format!("{words:?}"), "this machine has no libfabric", "ci/ofi.sh");
        return;
    }
    let codes: Vec<_> = ends.iter().map(|end| end.status.code()).collect();
    assert!(codes.iter().all(|code| *code == Some(0)), "{words:?}: {codes:?} {text}");
}

/// The functions that a source exports.
pub fn exports(source: &str) -> Vec<String> {
    source
        .split("#[unsafe(no_mangle)]")
        .skip(1)
        .map(|rest| {
            let name = rest.split("fn ").nth(1).expect("a function is exported");
            name.split('(').next().unwrap().to_owned()
        })
        .collect()
}

fn scratch() -> PathBuf {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi");
    fs::create_dir_all(&scratch).unwrap();
    scratch
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
