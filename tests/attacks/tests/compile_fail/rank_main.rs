//! Functions that `#[tsumugi::main]` refuses.

use tsumugi::{Error, Runtime};

mod not_async {
    #[tsumugi::main]
    async fn main(rt: &tsumugi::Runtime) {}
}

mod no_argument {
    #[tsumugi::main]
    fn main() {}
}

mod two_arguments {
    #[tsumugi::main]
    fn main(rt: &tsumugi::Runtime, words: Vec<String>) {}
}

mod generic {
    #[tsumugi::main]
    fn main<T>(rt: &tsumugi::Runtime) {}
}

mod named {
    #[tsumugi::main]
    fn start(rt: &tsumugi::Runtime) {}
}

mod no_function {
    #[tsumugi::main]
    struct Main;
}

mod argument {
    #[tsumugi::main(workers = 2)]
    fn main(rt: &tsumugi::Runtime) {}
}

mod returned {
    #[tsumugi::main]
    fn main(rt: &tsumugi::Runtime) -> u32 {
        7
    }
}

mod error {
    #[tsumugi::main]
    fn main(rt: &tsumugi::Runtime) -> Result<(), String> {
        Ok(())
    }
}

mod by_value {
    #[tsumugi::main]
    fn main(rt: tsumugi::Runtime) {}
}

#[tsumugi::main]
fn main(_: &Runtime) -> Result<(), Error> {
    Ok(())
}
