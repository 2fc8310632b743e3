# What the scripts share; to be sourced from the root of the repository.

# stage NAME COMMAND…: runs the command and says how long it took. The first failure ends the script.
stage() {
    local name=$1 start=$SECONDS status=0
    shift
    printf '\n==> %s\n' "$name"
    "$@" || status=$?
    if [ "$status" = 0 ]; then
        printf '<== %s: ok, %d s\n' "$name" $((SECONDS - start))
    else
        printf '<== %s: FAILED (%d), %d s\n' "$name" "$status" $((SECONDS - start))
        exit "$status"
    fi
}

# The crates of the workspace: each has a folder of its name.
crates() {
    local manifest
    for manifest in */Cargo.toml; do
        echo "${manifest%/Cargo.toml}"
    done
}

# The features of a crate, but for `default`.
features_of() {
    awk '/^\[/ { on = ($0 == "[features]") } on && $2 == "=" && $1 != "default" { print $1 }' "$1/Cargo.toml"
}
