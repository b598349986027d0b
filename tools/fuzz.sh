#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Builds every fuzz target, or those of FUZZ_TARGETS, and runs each on its corpus for FUZZ_SECONDS
# (default 60); with 0, only the corpus. New inputs stay in build/fuzz/found/<name>, those that fail in
# build/fuzz/failed/<name>.
#
#   FUZZ_TARGETS="frames configuration" FUZZ_SECONDS=600 tools/fuzz.sh
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/debian_packages.sh
. tools/debian_packages.sh

seconds=${FUZZ_SECONDS:-60}
read -ra names <<<"${FUZZ_TARGETS:-}"
targets=(fuzzers)
[ ${#names[@]} -eq 0 ] || targets=("${names[@]/%/_fuzzer}")
install_packages clang-19 libclang-rt-19-dev
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --parallel "${JOBS:-$(nproc)}" --target "${targets[@]}"

failed=()
for program in build/fuzz/*_fuzzer; do
    name=$(basename "$program" _fuzzer)
    [[ " ${FUZZ_TARGETS:-$name} " == *" $name "* ]] || continue
    found=build/fuzz/found/$name corpus=tests/fuzz/corpus/$name broken=build/fuzz/failed/$name/
    mkdir -p "$found" "$corpus" "$broken"
    limit=(-max_total_time="$seconds")
    [ "$seconds" -gt 0 ] || limit=(-runs=0)
    echo "== $name"
    "$program" "${limit[@]}" -max_len=8192 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -verbosity=0 -artifact_prefix="$broken" "$found" "$corpus" 2>&1 | tail -n 12 ||
        failed+=("$name")
done
[ ${#failed[@]} -eq 0 ] || { echo "fuzz: failed: ${failed[*]}"; exit 1; }
echo "fuzz: ok"
