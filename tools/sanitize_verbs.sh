#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Runs the C++ suites of RDMA on the fake libibverbs under AddressSanitizer with
# UndefinedBehaviorSanitizer, and under ThreadSanitizer (make sanitize-verbs). Arguments select:
#
#   tools/sanitize_verbs.sh tsan transport contract
#
# A suite fails with the first report. Long ones run in parts, each of which has SANITIZE_SECONDS (default 900).
set -euo pipefail
cd "$(dirname "$0")/.."

# Tests whose suites do not have RDMA in their names, too.
readonly filter='*Verbs*:*Rdma*:RmaM*:*Strand*:LinkExchange*:LinkEnd*:Failover*:Arrivals*:CmConnector*:HcaFilter*:GidChoice*:PortChoice*:PortPairs*:ChosenPorts*:CompletionInbox*'
declare -rA parts=([contract]=10 [transport]=3)
presets=() suites=()
for word in "$@"; do
    case $word in
    asan | tsan) presets+=("$word") ;;
    sys | transport | p2p | comm | contract | fakes) suites+=("$word") ;;
    *) echo "sanitize_verbs: no sanitizer or suite $word: asan, tsan; sys, transport, p2p, comm, contract, fakes" >&2
       exit 2 ;;
    esac
done
[ ${#presets[@]} -gt 0 ] || presets=(asan tsan)
[ ${#suites[@]} -gt 0 ] || suites=(sys fakes transport p2p comm contract)
targets=("${suites[@]/%/_test}")
targets=("${targets[@]/#/pccl_}")

# Runs the tests of a suite, in its parts; adds those that fail to `failed`.
run_suite() {
    local preset=$1 suite=$2 program=build/$1/pccl_${2}_test count=${parts[$2]:-1} part
    if ! "$program" --gtest_list_tests --gtest_filter="$filter" | grep -q '^  '; then
        failed+=("$preset/$suite: no test of RDMA")
        return
    fi
    for ((part = 0; part < count; part++)); do
        echo "== $preset $suite, part $((part + 1)) of $count"
        PCCL_COSTS_FILE=off GTEST_TOTAL_SHARDS=$count GTEST_SHARD_INDEX=$part \
            timeout "${SANITIZE_SECONDS:-900}" "$program" --gtest_brief=1 --gtest_filter="$filter" ||
            failed+=("$preset/$suite, part $((part + 1))")
    done
}

failed=()
for preset in "${presets[@]}"; do
    cmake --preset "$preset" >/dev/null
    cmake --build --preset "$preset" --parallel "${JOBS:-$(nproc)}" --target "${targets[@]}"
    for suite in "${suites[@]}"; do
        run_suite "$preset" "$suite"
    done
done
[ ${#failed[@]} -eq 0 ] || { printf 'sanitize_verbs: failed: %s\n' "${failed[@]}"; exit 1; }
echo "sanitize_verbs: ok"
