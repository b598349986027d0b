#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Builds, tests and measures on a machine with several GPUs of one host that has torch, nvcc, CMake, ninja and
# pytest, and needs no network: where the Debian packages are missing, build/deps stands in for them (run
# tools/collect_deps.sh elsewhere, and carry that folder along).
#
#   tools/gpu_suite.sh [build] [test] [sanitize] [upstream] [eager] [memory] [overlap] [torch] [capsules]
#                      [sweep] [bench] [cpu] [asan] [tsan]          default: build test eager memory bench
#
# cpu, asan and tsan are the C++ tests and ranks in Python without CUDA, for machines with many cores.
# Goes on past a part that fails. Results go to $OUT, by default build/gpu.
set -uo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
build=build/gpu
out=$(realpath -m "${OUT:-$build/results}")
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(build test eager memory bench)
failed=()
mkdir -p "$out" build
export PYTHONPATH=$PWD/$build/python PYTHONUNBUFFERED=1 NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1

build() {
    local options=(-DCMAKE_BUILD_TYPE=Release -DPCCL_WITH_CUDA=ON -DPCCL_UNITY_BUILD=ON "-DPython_EXECUTABLE=$(command -v "$python")")
    [ ! -d build/deps ] || options+=("-DPCCL_DEPS_DIR=$PWD/build/deps")
    cmake -S . -B "$build" -G Ninja "${options[@]}" >"$out/build.log" 2>&1 || { tail -30 "$out/build.log"; return 1; }
    cmake --build "$build" --target pccl _core >>"$out/build.log" 2>&1 ||
        { grep -B2 -A12 -m6 'error' "$out/build.log"; return 1; }
    cmake --build "$build" --target _torch >>"$out/build.log" 2>&1 ||
        { grep -B2 -A12 -m6 'error' "$out/build.log"; echo "without pccl._torch"; }
    "$python" -c 'import pccl; from pccl import _build_info as b; print("built: CUDA", b.CUDA)'
}

# Ranks share the GPU of a machine that has one. Under MPS their kernels run side by side; else each wait for a peer's
# would wait for a time slice.
under_mps() {
    local status folder
    [ "$(nvidia-smi -L | wc -l)" -eq 1 ] || { "$@"; return; }
    folder=$(mktemp -d)
    export CUDA_MPS_PIPE_DIRECTORY=$folder CUDA_MPS_LOG_DIRECTORY=$folder
    nvidia-cuda-mps-control -d || return 1
    "$@"
    status=$?
    echo quit | nvidia-cuda-mps-control
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    rm -rf "$folder"
    return $status
}

tests() { timeout "${TEST_LIMIT:-900}" "$python" -m pytest -q --maxfail=5 --durations=12 ${TESTS:-tests/gpu} 2>&1 | tee "$out/tests.log" | grep -v "^frame #" | tail -100; }

eager() { timeout 100 "$python" benchmarks/gpu_eager.py 2>&1 | tee "$out/eager.log"; }

memory() { timeout 200 "$python" benchmarks/gpu_memory.py 2>&1 | grep -v Warning | tee "$out/memory.log"; }

torch() { timeout 200 "$python" benchmarks/gpu_torch.py --json "$out/torch.json" 2>&1 | tee "$out/torch.log"; }

capsules() { timeout 150 "$python" benchmarks/gpu_capsules.py --json "$out/capsules.json" 2>&1 | grep -v Warning | tee "$out/capsules.log"; }

overlap() { timeout 100 "$python" benchmarks/gpu_overlap.py 2>&1 | tee "$out/overlap.log"; }

# Wrong accesses, and races within a block, of each kernel alone; of programs between two ranks races alone, as
# memcheck takes what is mapped of a peer's memory for nobody's.
sanitize() {
    local alone="tests/gpu/test_device_group.py -k each_kernel_alone"
    sanitized memcheck "$alone" && sanitized racecheck "$alone" &&
        sanitized racecheck "tests/gpu/test_schedules.py::test_sizes_and_types[2]"
}

sanitized() {
    local tool=$1 tests=$2 sanitizer
    sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
    [ -x "$sanitizer" ] || { echo "no compute-sanitizer on this machine"; return 1; }
    # shellcheck disable=SC2086  # words of it are arguments
    timeout "${SANITIZE_LIMIT:-150}" "$sanitizer" --tool "$tool" --target-processes all --error-exitcode 9 \
        "$python" -m pytest -q $tests 2>&1 | tee -a "$out/$tool.log" |
        grep -E 'ERROR SUMMARY|RACECHECK SUMMARY|=========.*(Invalid|Race|Error)|passed|failed' | sort | uniq -c | head -20
    [ "${PIPESTATUS[0]}" = 0 ]
}

upstream() {
    PYTHONPATH="$PYTHONPATH:$PWD/build/deps/python" "$python" tests/upstream/run_gpu.py \
        --output "$out/upstream" ${UPSTREAM:-} 2>&1 | tee "$out/upstream.log" | tail -60
}

bench() { timeout "${BENCH_LIMIT:-200}" "$python" benchmarks/gpu_collectives.py --json "$out/$1.json" "${@:2}" 2>&1 | tee "$out/$1.log"; }

# The tests that take longest are cut into shards: lines of "test shards" for `in_shards`.
sharded_tests() {
    local jobs
    jobs=$(nproc)
    printf '%s\n' "emulated $jobs" "schedule $jobs" "comm $(((jobs + 3) / 4))" "contract $(((jobs + 3) / 4))"
}

# In shards, all at once: the sharded tests of build/$1.
in_shards() {
    local logs=build/$1/shards status
    mkdir -p "$logs"
    sharded_tests | while read -r test shards; do
        [ ! -x "build/$1/pccl_${test}_test" ] || seq -f "$test $shards %.0f" 0 $((shards - 1))
    done | xargs -P "$(nproc)" -L1 bash -c 'GTEST_TOTAL_SHARDS=$4 GTEST_SHARD_INDEX=$5 timeout "${SHARD_LIMIT:-400}" \
        "build/$1/pccl_$3_test" --gtest_brief=1 >"$2/$3-$5.log" 2>&1 || { echo "$3, shard $5 of $4: $?"; exit 1; }' - "$1" "$logs"
    status=$?
    tail -n +1 "$logs"/*.log >"$out/$1-shards.log"
    return $status
}

# As the presets of CMakePresets.json.
checked() {
    local name=$1 sanitizer=$2 status=0 whole unsharded
    local options=(-DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1" -DPCCL_WITH_CUDA=OFF
        -DPCCL_BUILD_TESTS=ON -DPCCL_UNITY_BUILD=ON "-DPCCL_SANITIZE=$sanitizer" "-DPython_EXECUTABLE=$(command -v "$python")")
    [ ! -d build/deps ] || options+=("-DPCCL_DEPS_DIR=$PWD/build/deps")
    { cmake -S . -B "build/$name" -G Ninja "${options[@]}" && cmake --build "build/$name"; } >"$out/$name-build.log" 2>&1 ||
        { grep -A12 -m6 'error' "$out/$name-build.log"; return 1; }
    echo "$name: built after $((SECONDS - began)) s"
    whole="^($(sharded_tests | cut -d' ' -f1 | paste -sd'|'))(_[0-9]+)?\$"
    ctest --test-dir "build/$name" --parallel $(($(nproc) / 4)) --output-on-failure -E "$whole" >"$out/$name.log" 2>&1 &
    unsharded=$!
    in_shards "$name" || status=1
    wait $unsharded || status=1
    grep -E 'tests passed|\*\*\*|FAILED  ' "$out/$name.log"
    grep -hE 'FAILED|WARNING: T|ERROR: A|runtime error' "$out/$name-shards.log" | sort | uniq -c | head -20
    echo "$name: tests ended after $((SECONDS - began)) s"
    [ -z "$sanitizer" ] || PYTHON=$(command -v "$python") tools/sanitizer_smoke.sh "$name" || status=1
    return $status
}

for part in "${parts[@]}"; do
    began=$SECONDS
    case $part in
        build) build ;;
        test) under_mps tests ;;
        sweep) bench sweep --sweep ${SWEEP:-} ;;
        eager) eager ;;
        memory) memory ;;
        overlap) overlap ;;
        torch) torch ;;
        capsules) capsules ;;
        sanitize) sanitize ;;
        upstream) upstream ;;
        cpu) checked cpu "" ;;
        asan) checked asan address,undefined ;;
        tsan) checked tsan thread ;;
        bench) bench bench ${BENCH:-} ;;
        *) echo "unknown part: $part" >&2; false ;;
    esac || failed+=("$part")
    echo "== $part: $((SECONDS - began)) s"
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}"; exit 1; }
