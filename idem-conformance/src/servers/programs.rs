//! Finds binaries on this machine.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::engine::Engine;

/// The engine's binary: in `only`, if given; else in `PATH`, then in the engine's own folders.
pub(super) fn find(engine: &Engine, only: Option<&Path>) -> Option<PathBuf> {
    let folders = only.map_or_else(|| everywhere(engine), |folder| vec![folder.to_owned()]);
    engine.programs.iter().find_map(|name| {
        folders.iter().map(|folder| folder.join(name)).find(|file| is_program(file))
    })
}

fn everywhere(engine: &Engine) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).chain((engine.folders)()).collect()
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// `parent/*/bin`, the highest version first.
pub(super) fn versions(parent: &str) -> Vec<PathBuf> {
    let mut names: Vec<String> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort_by_key(|name| std::cmp::Reverse(version(name)));
    names.into_iter().map(|name| Path::new(parent).join(name).join("bin")).collect()
}

/// `9.6` is older than `14`, which text would not say.
fn version(name: &str) -> Vec<u32> {
    name.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_sorted_as_numbers_newest_first() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["9.6", "14", "17", "15", "notes"] {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        let found = versions(parent.path().to_str().unwrap());
        let names: Vec<_> =
            found.iter().map(|bin| bin.parent().unwrap().file_name().unwrap()).collect();
        assert_eq!(names, ["17", "15", "14", "9.6", "notes"]);
    }

    #[test]
    fn no_folder_has_no_versions() {
        assert!(versions("/nonexistent").is_empty());
    }
}
