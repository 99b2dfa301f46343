//! Compiles the C side and links libmruby, which Debian's libmruby-dev has.

fn main() {
    println!("cargo::rerun-if-changed=src/sys.c");
    let header = std::path::Path::new("/usr/include/mruby.h");
    if !header.exists() && std::env::var_os("CPATH").is_none() {
        println!("cargo::error=mruby.h is missing: apt-get install libmruby-dev");
        return;
    }
    // `make mruby-check`: memory from malloc, no limit and no freezing, and garbage is collected before
    // each step that Rust takes, so that what is not protected is gone.
    println!("cargo::rerun-if-env-changed=ORIBI_MRUBY_CHECK");
    let mut build = cc::Build::new();
    match std::env::var("ORIBI_MRUBY_CHECK") {
        Ok(how) if how == "address" => {
            build.define("ORIBI_MRUBY_CHECK", None).flag("-fsanitize=address")
        }
        Ok(_) => build.define("ORIBI_MRUBY_CHECK", None),
        Err(_) => &mut build,
    };
    build.file("src/sys.c").warnings(true).extra_warnings(true).compile("oribi_mruby");
    println!("cargo::rustc-link-lib=static=mruby");
    println!("cargo::rustc-link-lib=m");
    println!("cargo::rustc-link-search=native=/usr/lib");
    println!("cargo::rustc-link-search=native=/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
}
