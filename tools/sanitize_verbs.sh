#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Runs the C++ suites of RDMA on the fake libibverbs under AddressSanitizer with
# UndefinedBehaviorSanitizer, and under ThreadSanitizer (make sanitize-verbs). Arguments select:
#
#   tools/sanitize_verbs.sh tsan transport contract
#
# A suite fails with the first report; SANITIZE_SECONDS (default 1800) limits each of them.
set -euo pipefail
cd "$(dirname "$0")/.."

# Tests whose suites do not have RDMA in their names, too.
readonly filter='*Verbs*:*Rdma*:RmaM*:*Strand*:LinkExchange*:LinkEnd*:Failover*:Arrivals*:CmConnector*:HcaFilter*:GidChoice*:PortChoice*:ChosenPorts*:CompletionInbox*'
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

failed=()
for preset in "${presets[@]}"; do
    cmake --preset "$preset" >/dev/null
    cmake --build --preset "$preset" --parallel "${JOBS:-$(nproc)}" --target "${targets[@]}"
    for suite in "${suites[@]}"; do
        echo "== $preset $suite"
        PCCL_COSTS_FILE=off timeout "${SANITIZE_SECONDS:-1800}" "build/$preset/pccl_${suite}_test" \
            --gtest_brief=1 --gtest_filter="$filter" || failed+=("$preset/$suite")
    done
done
[ ${#failed[@]} -eq 0 ] || { echo "sanitize_verbs: failed: ${failed[*]}"; exit 1; }
echo "sanitize_verbs: ok"
