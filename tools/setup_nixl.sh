#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Puts the sources of NIXL below build/nixl, where the next make dev finds the headers: it then builds
# libplugin_PCCL.so, and make test runs what tests/nixl has. NIXL's wheels have no headers.
#
#   tools/setup_nixl.sh            from its repository; nothing happens where they are already
#   tools/setup_nixl.sh CLONE      from a clone that is here
set -euo pipefail
cd "$(dirname "$0")/.."

commit=8770b655a6b17b5cdf7d2b56b6e0be5392496df5 # after 1.4.0; the plugin fits all since 1.0
repository=https://github.com/ai-dynamo/nixl
patience=60 # seconds
folder=build/nixl
marker=$folder/src/api/cpp/backend/backend_engine.h

say() { printf 'setup: %s\n' "$*"; }

[ -e "$marker" ] && exit
mkdir -p build
unfinished=$(mktemp -d build/nixl.XXXXXX)
trap 'rm -rf "$unfinished"' EXIT
clone=${1:-}
if [ -z "$clone" ]; then
    say "fetching NIXL's sources"
    clone=$unfinished/clone
    git init --quiet "$clone"
    timeout "$patience" git -C "$clone" fetch --quiet --depth 1 "$repository" "$commit" || {
        say "$repository is not reached: give the folder of a clone to tools/setup_nixl.sh"
        exit 1
    }
fi
mkdir "$unfinished/nixl"
git -C "$clone" archive "$commit" LICENSE src test | tar -x -C "$unfinished/nixl"
rm -rf "$folder"
mv "$unfinished/nixl" "$folder"
