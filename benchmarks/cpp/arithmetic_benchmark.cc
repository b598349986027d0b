// SPDX-License-Identifier: Apache-2.0

// Rates of the arithmetic kernels by level, type and operator, in L2 and in memory, and of memcpy
// beside them.
//
//     arithmetic_benchmark --benchmark_filter='sum/float32'
//
// bytes_per_second counts what is read and written: three times the buffer for a reduction, twice
// for a copy.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>
#include <vector>

#include "csrc/collective/arithmetic/arithmetic.h"
#include "csrc/collective/arithmetic/kernels.h"

namespace {

using pccl::DataType;
using pccl::ReduceOp;
namespace arithmetic = pccl::arithmetic;

constexpr std::size_t kInL2 = std::size_t{128} << 10;
constexpr std::size_t kInMemory = std::size_t{64} << 20;

/// 1.0 in every float format, and small integers: no operator slows down on special values.
std::vector<std::byte> operand(DataType type, std::size_t bytes) {
    std::vector<std::byte> data(bytes, std::byte{0});
    const bool bfloat = type == DataType::kBfloat16;
    for (std::size_t i = 1; i < bytes; i += 2) data[i] = bfloat ? std::byte{0x3F} : std::byte{0x3C};
    return data;
}

void run_combine(benchmark::State& state, arithmetic::Combine combine, DataType type,
                 std::size_t bytes) {
    const auto a = operand(type, bytes);
    auto b = operand(type, bytes);
    const std::size_t count = bytes / size_of(type);
    for (auto _ : state) {
        combine(b.data(), a.data(), b.data(), count);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(3 * bytes));
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}

void run_copy(benchmark::State& state, std::size_t bytes) {
    const std::vector<std::byte> from(bytes, std::byte{1});
    std::vector<std::byte> to(bytes);
    for (auto _ : state) {
        arithmetic::copy_bytes(to.data(), from.data(), bytes);
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(2 * bytes));
}

void register_all(const char* place, std::size_t bytes) {
    for (const auto& level : arithmetic::levels()) {
        for (int t = 0; t < pccl::kDataTypes; ++t) {
            for (int o = 0; o < pccl::kReduceOps; ++o) {
                const auto type = static_cast<DataType>(t);
                const auto op = static_cast<ReduceOp>(o);
                const arithmetic::Combine combine =
                    level.kernels
                        ->combine[static_cast<std::size_t>(t)][static_cast<std::size_t>(o)];
                if (combine == nullptr || op == ReduceOp::kAvg) continue;
                const std::string name = std::string(pccl::to_string(op)) + "/" +
                                         std::string(pccl::to_string(type)) + "/" + level.name +
                                         "/" + place;
                benchmark::RegisterBenchmark(name.c_str(), run_combine, combine, type, bytes);
            }
        }
    }
    benchmark::RegisterBenchmark((std::string("copy/") + place).c_str(), run_copy, bytes);
}

}  // namespace

int main(int argc, char** argv) {
    register_all("l2", kInL2);
    register_all("memory", kInMemory);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
