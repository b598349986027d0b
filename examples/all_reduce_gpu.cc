// SPDX-License-Identifier: Apache-2.0

// PCCL on the GPUs of one host, from C++: a process for each card makes a group, adds up a buffer
// of that many bytes, checks the sum and says how long it took. No MPI, no torch:
//
//     all_reduce_gpu 0,1 16M
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <pccl/device_group.h>
#include <pccl/store.h>

namespace {

using pccl::Block;
using pccl::Deadline;
using pccl::DeviceGroup;
using pccl::DeviceMemory;
using pccl::Status;

constexpr int kWarmUpCalls = 5;
constexpr int kCalls = 50;

struct Job {
    std::vector<int> cards;
    std::size_t bytes = 0;
    std::string rendezvous;
};

/// All calls are enqueued, then awaited: seconds of one.
pccl::Result<double> time_calls(DeviceGroup& group, DeviceMemory& memory, int calls) {
    const Block block{memory.data(), memory.bytes() / sizeof(float)};
    PCCL_TRY(memory.wait());
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i)
        PCCL_TRY(group.launch({.inputs = {&block, 1}, .outputs = {&block, 1}}, nullptr));
    PCCL_TRY(memory.wait());
    PCCL_TRY(group.health());
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
    return passed.count() / calls;
}

Status run_rank(const Job& job, int rank) {
    const int ranks = static_cast<int>(job.cards.size());
    PCCL_ASSIGN_OR_RETURN(
        const auto memory,
        DeviceMemory::allocate(job.cards[static_cast<std::size_t>(rank)], job.bytes));
    PCCL_ASSIGN_OR_RETURN(
        const auto store,
        pccl::open_store(job.rendezvous, rank, ranks, Deadline::after(std::chrono::seconds(30))));
    PCCL_ASSIGN_OR_RETURN(const auto group,
                          DeviceGroup::create({.rank = rank,
                                               .size = ranks,
                                               .store = store,
                                               .device = job.cards[static_cast<std::size_t>(rank)],
                                               .timeout = std::chrono::seconds(60)}));
    std::vector<float> values(job.bytes / sizeof(float), static_cast<float>(rank + 1));
    const auto host = std::as_writable_bytes(std::span(values));
    PCCL_TRY(memory->write(host));
    PCCL_TRY(time_calls(*group, *memory, 1).status());
    PCCL_TRY(memory->read(host));
    const auto sum = static_cast<float>(ranks * (ranks + 1) / 2);
    const auto wrong = std::ranges::count_if(values, [sum](float value) { return value != sum; });
    // Else the values would double with every call, and soon be infinite.
    std::ranges::fill(values, 0.0F);
    PCCL_TRY(memory->write(host));
    PCCL_TRY(time_calls(*group, *memory, kWarmUpCalls).status());
    PCCL_ASSIGN_OR_RETURN(const double seconds, time_calls(*group, *memory, kCalls));
    const double bus = 2.0 * (ranks - 1) / ranks * static_cast<double>(job.bytes) / seconds / 1e9;
    std::printf("rank %d on GPU %d: %zu bytes in %.1f us, bus bandwidth %.1f GB/s, %td wrong\n",
                rank, job.cards[static_cast<std::size_t>(rank)], job.bytes, seconds * 1e6, bus,
                wrong);
    return wrong == 0 ? Status::ok() : Status::internal("the sum is wrong");
}

std::optional<std::vector<int>> parse_cards(const std::string& text) {
    std::vector<int> cards;
    for (std::size_t at = 0; at <= text.size(); at = text.find(',', at) + 1) {
        char* end = nullptr;
        const long card = std::strtol(text.c_str() + at, &end, 10);
        if (end == text.c_str() + at || card < 0 || card > 1023) return std::nullopt;
        cards.push_back(static_cast<int>(card));
        if (*end == '\0') return cards;
        if (*end != ',') return std::nullopt;
    }
    return std::nullopt;
}

/// "512", "16M"; whole floats, one at least; 0: none.
std::size_t parse_size(const std::string& text) {
    char* end = nullptr;
    const unsigned long long number = std::strtoull(text.c_str(), &end, 10);
    const std::string unit = end;
    const int shift = unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : 0;
    const bool is_size = (shift != 0 || unit.empty()) && number > 0 && number < 1U << 20;
    return is_size ? (number << shift) / sizeof(float) * sizeof(float) : 0;
}

/// In a process of its own: CUDA works in no child of one that has used it.
int start_rank(const Job& job, int rank) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    const Status status = run_rank(job, rank);
    // What all lack is said once.
    if (!status.is_ok() && (rank == 0 || status.code() != pccl::StatusCode::kUnavailable))
        std::fprintf(stderr, "rank %d: %s\n", rank, status.message().c_str());
    std::fflush(nullptr);
    ::_exit(status.is_ok() ? 0 : 1);
}

bool run_all(const Job& job) {
    std::vector<pid_t> children;
    for (int rank = 0; rank < static_cast<int>(job.cards.size()); ++rank)
        children.push_back(start_rank(job, rank));
    bool is_well = true;
    for (const pid_t child : children) {
        int status = 0;
        is_well &= ::waitpid(child, &status, 0) == child && status == 0;
    }
    return is_well;
}

}  // namespace

int main(int argc, char** argv) {
    const auto cards = argc == 3 ? parse_cards(argv[1]) : std::nullopt;
    const std::size_t bytes = argc == 3 ? parse_size(argv[2]) : 0;
    if (!cards || bytes == 0) {
        std::fprintf(stderr, "usage: all_reduce_gpu CARDS SIZE, as in: all_reduce_gpu 0,1 16M\n");
        return 2;
    }
    std::array folder = std::to_array("/tmp/all_reduce_gpu-XXXXXX");
    if (::mkdtemp(folder.data()) == nullptr) {
        std::perror(folder.data());
        return 1;
    }
    const bool is_well = run_all({.cards = *cards,
                                  .bytes = bytes,
                                  .rendezvous = std::string("file://") + folder.data() + "/store"});
    std::filesystem::remove_all(folder.data());
    return is_well ? 0 : 1;
}
