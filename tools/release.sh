#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Makes a release: checks the tree, dates the changelog, builds and checks the wheels, writes their
# checksums, and makes the annotated tag vVERSION. It pushes nothing.
#
#   tools/release.sh VERSION                        a release, VERSION being such as 0.2.0
#   tools/release.sh VERSION --dry-run              does the same without a commit and without a tag
#   tools/release.sh VERSION --dry-run --no-wheels  checks the tree alone, in a second
#   TORCHES="torch==2.13.0 torch==2.14.0"           builds wheels for these, too (tools/wheel.sh)
#   PYTHONS, CUDA, JOBS                             as for tools/wheel.sh
#
# Run `make test` and `make lint` first. The wheels and SHA256SUMS are in dist/ afterwards. A run that
# fails while it builds may be repeated on the same day (UTC), after `rm -r dist`.
set -euo pipefail
cd "$(dirname "$0")/.."

version= dry_run= wheels=yes
today=$(date --utc +%F)
failed=

say() { echo "release.sh: $*"; }

# One line for each check that fails: what is wrong, and how to mend it.
fail() {
    echo "release.sh: $1: $2" >&2
    failed=yes
}

# Ends the run when a check has failed.
stop_if_failed() { [ -z "$failed" ] || exit 1; }

read_arguments() {
    local argument
    for argument in "$@"; do
        case $argument in
        --dry-run) dry_run=yes ;;
        --no-wheels) wheels= ;;
        -*) fail "unknown option $argument" "write --dry-run or --no-wheels" ;;
        *)
            [ -z "$version" ] || fail "two versions, $version and $argument" "name one"
            version=$argument
            ;;
        esac
    done
    [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "version '$version' is not X.Y.Z" "write tools/release.sh 0.2.0"
    [ -n "$wheels" ] || [ -n "$dry_run" ] || fail "--no-wheels would tag what was not built" "add --dry-run"
    stop_if_failed
}

check_clean() {
    local changed
    changed=$(git status --porcelain)
    [ -z "$changed" ] ||
        fail "the tree has changes, $(head -1 <<<"$changed" | cut -c4-) among them" "commit or remove them"
}

check_tag() {
    ! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null ||
        fail "tag v$version is there" "choose another version, or delete it with: git tag -d v$version"
}

check_version() {
    local file=python/pccl/_version.py found place
    found=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' "$file")
    [ "$found" = "$version" ] || fail "$file has version '$found'" "set __version__ = \"$version\""
    # CMake packages match by minor version.
    while IFS=: read -r place found; do
        [ "$found" = "find_package(pccl ${version%.*}" ] ||
            fail "$place has $found)" "write find_package(pccl ${version%.*} ...)"
    done < <(git grep --only-matching -E 'find_package\(pccl [0-9.]+' -- docs tests/consumer)
}

# The headings of versions in the changelog, newest first.
headings() { grep '^## ' CHANGELOG.md || true; }

# The date that the changelog has for this version.
changelog_date() { headings | head -1 | sed -n "s/^## \[$version\] - //p"; }

# The entries of this version, without its heading.
section() {
    awk -v heading="## [$version]" '
        /^## / { inside = index($0, heading) == 1; next }
        inside' CHANGELOG.md
}

check_changelog() {
    local date
    date=$(changelog_date)
    case $date in
    unreleased | "$today") ;;
    "") fail "the first section of CHANGELOG.md is '$(headings | head -1)'" "begin with '## [$version] - unreleased'" ;;
    *) fail "CHANGELOG.md dates $version '$date'" "write 'unreleased', or $today (UTC)" ;;
    esac
    [ -z "$date" ] || grep -q '^- ' <<<"$(section)" ||
        fail "CHANGELOG.md has no entries for $version" "add one line a change, each with '- ' before it"
}

check_dist() {
    [ -z "$wheels" ] || [ -z "$(find dist -name '*.whl' -print -quit 2>/dev/null)" ] ||
        fail "dist/ holds wheels of another build" "remove them with: rm -r dist"
}

set_date() {
    [ "$(changelog_date)" = unreleased ] || return 0
    [ -z "$dry_run" ] || { say "CHANGELOG.md would get the date $today"; return 0; }
    sed -i "s/^## \[$version\] - unreleased\$/## [$version] - $today/" CHANGELOG.md
    git commit --quiet --message "release: date $version" -- CHANGELOG.md
}

build_wheels() {
    local torch wheel
    for torch in none ${TORCHES:-}; do
        TORCH=$torch tools/wheel.sh
    done
    for wheel in dist/*/*.whl; do
        case $wheel in
        dist/*/pccl_collectives-"$version"-*.whl) ;;
        *) fail "$wheel is not a wheel of $version" "let tools/wheel.sh build pccl_collectives-$version-*.whl" ;;
        esac
        [ ! -e "$wheel" ] || python3 tools/check_wheel.py "$wheel" ||
            fail "tools/check_wheel.py refuses $wheel" "mend what it names above"
    done
    check_clean
    stop_if_failed
    (cd dist && sha256sum -- */*.whl >SHA256SUMS)
    say "$(wc -l <dist/SHA256SUMS) wheels in dist/, with SHA256SUMS"
}

# Git takes lines with # before them for comments, unless it is told otherwise.
make_tag() {
    [ -z "$dry_run" ] || { say "v$version would be tagged at $(git rev-parse --short HEAD)"; return 0; }
    { printf 'PCCL %s\n\n' "$version"; section; } |
        git tag --annotate --cleanup=whitespace --file - "v$version"
    say "v$version is at $(git rev-parse --short HEAD); publish it with: git push REMOTE HEAD v$version"
}

read_arguments "$@"
check_clean
check_tag
check_version
check_changelog
check_dist
stop_if_failed
set_date
[ -z "$wheels" ] || build_wheels
make_tag
