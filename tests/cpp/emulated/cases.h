// SPDX-License-Identifier: Apache-2.0

// Collectives on the emulated GPU, checked against their definitions.
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <span>
#include <vector>

#include "csrc/device/device_group.h"
#include "tests/fakes/device_ranks.h"

namespace pccl::comm {

/// Whether tests can run kernels of as many threads as the library plans for long tensors.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kRunsLongOnes = false;  // ThreadSanitizer knows 8128 threads
#else
inline constexpr bool kRunsLongOnes = true;
#endif
inline constexpr const char* kWhyNoLongOnes = "ThreadSanitizer knows fewer threads";

struct Case {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    DataType type = DataType::kInt32;
    std::size_t count = 1;  // elements of a block
    ReduceOp op = ReduceOp::kSum;
    Rank root = 0;
    std::size_t offset = 0;          // elements before each buffer, so that it is not aligned
    std::size_t offset_by_rank = 0;  // and so many more of them with each rank
    bool in_place = false;           // where input and output can be one memory
    std::optional<kernels::LaunchPlan> plan{};
    std::string_view algorithm{};  // a schedule of that name; empty: a kernel
    bool has_split_sizes = false;
};

std::ostream& operator<<(std::ostream& out, const Case& of);

/// Blocks of GPU memory one after the other, with poison around them.
class Buffer {
   public:
    Buffer(const fakes::DeviceRank& member, const Case& of, std::size_t blocks);

    [[nodiscard]] std::span<const Block> blocks() const { return blocks_; }
    [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
    /// Bytes outside of the blocks that are no longer what they were.
    [[nodiscard]] std::size_t strays() const;

   private:
    std::span<std::byte> before_;
    std::span<std::byte> bytes_;  // of all blocks
    std::span<std::byte> behind_;
    std::vector<Block> blocks_;
};

/// One rank's part of a case: buffers, the launch, and whether the outputs are right.
class CaseRun {
   public:
    CaseRun(const Case& of, fakes::DeviceRank& member);

    [[nodiscard]] const Case& of() const { return case_; }
    [[nodiscard]] Collective collective() const;
    [[nodiscard]] Status launch() const;
    [[nodiscard]] bool has_results() const { return wrong_elements() == 0; }
    void expect_results() const;
    void overwrite_outputs(std::byte value) const;
    void overwrite(std::byte value) const;
    /// Whether nobody has changed anything since overwrite(value).
    [[nodiscard]] bool holds_only(std::byte value) const;

   private:
    [[nodiscard]] std::size_t wrong_elements() const;
    void share_memory();
    void fill_inputs();

    const Case& case_;
    fakes::DeviceRank& member_;
    Buffer input_;
    Buffer output_;
    std::span<const Block> inputs_;
    std::span<const Block> outputs_;
};

/// One rank's part of several cases, which outlive it: launched by one call, as the first one says.
class RunTogether {
   public:
    RunTogether(const std::vector<Case>& cases, fakes::DeviceRank& member);

    [[nodiscard]] std::vector<Collective> collectives() const;
    /// Asks afterwards how the group is, as the host of a user does that looks at errors.
    [[nodiscard]] Status launch() const;
    /// Does not ask: peers hear nothing from this rank's host.
    [[nodiscard]] Status launch_and_look_away() const;
    void expect_results() const;
    // As those of CaseRun, of all.
    [[nodiscard]] bool has_results() const;
    void overwrite_outputs(std::byte value) const;
    void overwrite(std::byte value) const;
    [[nodiscard]] bool holds_only(std::byte value) const;

   private:
    fakes::DeviceRank& member_;
    std::vector<CaseRun> runs_;
};

/// Every rank of a group of `ranks` launches all of them, one after the other.
void run_cases(int ranks, const std::vector<Case>& cases);

}  // namespace pccl::comm
