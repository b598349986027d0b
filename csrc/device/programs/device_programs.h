// SPDX-License-Identifier: Apache-2.0

// Programs of a group of GPUs, compiled and verified at their first use, and the memory that they
// share.
#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/rank_bits.h"
#include "csrc/collective/collective.h"
#include "csrc/device/launch/preferences.h"
#include "csrc/device/programs/device_program.h"
#include "csrc/device/programs/protocol_choice.h"
#include "csrc/kernels/launch.h"
#include "csrc/schedule/source.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/nvlink/symmetric_heap.h"

namespace pccl::device {

struct PlannedProgram {
    kernels::LaunchPlan plan;
    const char* obstacle = "";  // ProtocolChoice::obstacle
};

struct DeviceProgramOptions {
    sys::cuda::Driver& driver;
    int device = 0;
    Rank rank = 0;
    int size = 1;
    kernels::Gpus gpus{size};
    Preferences preferences{};
    abi::LL128Trial ll128 = abi::LL128Trial::kNone;  // result of the trial between the GPUs
    // States of all ranks; null: each rank makes its own, and the group exchanges their addresses.
    transport::nvlink::SymmetricHeap* states = nullptr;
    // Further states in the GPUs' memory, for the ranks of `linked`, which reach each other; may be
    // null.
    transport::nvlink::SymmetricHeap* linked_states = nullptr;
    RankBits linked = 0;
};

class PCCL_API DevicePrograms {
   public:
    explicit DevicePrograms(const DeviceProgramOptions& options) : options_(options) {}
    ~DevicePrograms();
    DevicePrograms(const DevicePrograms&) = delete;
    DevicePrograms& operator=(const DevicePrograms&) = delete;

    /// Returns the launch of `collective`, whose blocks have one length; its team is not set. A
    /// plan limits its blocks to `wanted->blocks` and their threads to `wanted->threads`, and
    /// selects the message form by protocol: kDirect, kLL, or kLL128 where its lines arrive whole.
    /// The first call of a kind allocates, so it cannot be captured into a graph. Errors:
    /// kInvalidArgument; kUnsupported where `source` does not implement it or GPUs do not run it;
    /// the driver's.
    Result<kernels::ProgramLaunch> prepare(
        const Collective& collective, const schedule::SourcePtr& source,
        const std::optional<kernels::LaunchPlan>& wanted = std::nullopt);
    /// Returns this rank's program of a source that prepare() has accepted, with a root where it
    /// has one.
    [[nodiscard]] std::shared_ptr<const schedule::Program> program_of(
        const schedule::SourcePtr& source, Rank root) const;
    /// Returns the plan for a collective of blocks of `bytes` with any root. Errors: as
    /// prepare()'s.
    [[nodiscard]] Result<PlannedProgram> plan_for(const schedule::ScheduleSource& source,
                                                  std::size_t bytes) const;
    /// Makes the program state where there is none yet: the first call allocates.
    Status make_state();
    /// Returns this rank's program state, for the peers to map where it is memory of a GPU; 0
    /// before prepare() and make_state().
    [[nodiscard]] sys::cuda::DeviceAddress state() const { return state_; }
    /// Returns this rank's state for each peer, likewise.
    [[nodiscard]] abi::DeviceStates states() const;
    [[nodiscard]] std::size_t state_bytes() const { return abi::state_bytes(options_.size); }
    /// Returns whether the peers have taken, before `deadline`, all messages of finished launches.
    /// Until then they write to the program state. False where that is unknown.
    [[nodiscard]] bool await_taken(Deadline deadline) const;
    /// Makes the destructor leave the memory allocated: a kernel may still use it.
    void keep_memory() { memory_.clear(); }

   private:
    struct Key {
        schedule::SourcePtr source;
        Rank root = 0;
        auto operator<=>(const Key&) const = default;
    };
    struct Ready {
        DeviceGrid grid;
        abi::DeviceProgram program;  // workers and messages are not set
        std::shared_ptr<const schedule::Program> origin;
    };
    [[nodiscard]] Status check(const kernels::LaunchPlan& wanted) const;
    /// Returns the default plan for blocks of `bytes`.
    [[nodiscard]] PlannedProgram usual_plan(const schedule::ScheduleSource& source,
                                            const DeviceGrid& grid, std::size_t bytes) const;
    Result<const Ready*> find(const Key& key);
    Result<Ready> make(const Key& key);
    /// Returns whether peers write to memory that ends with this object. They write to `states`
    /// through mappings of their own.
    [[nodiscard]] bool is_reached_by_peers() const { return options_.states == nullptr; }
    /// Maps the states of all ranks, and the further ones of linked ranks.
    Status map_states();
    /// Stores the addresses of all ranks' states in this rank's, and returns its address.
    Result<sys::cuda::DeviceAddress> introduce(const transport::nvlink::SymmetricHeap& states);
    Result<abi::DeviceProgram> upload(const DeviceTables& tables, const DeviceGrid& grid);
    Result<sys::cuda::DeviceAddress> allocate(std::size_t bytes);
    Status store(sys::cuda::DeviceAddress to, std::span<const std::byte> from);

    const DeviceProgramOptions options_;
    std::map<Key, Ready> ready_;
    std::vector<sys::cuda::DeviceAddress> memory_;
    sys::cuda::DeviceAddress state_ = 0;
    sys::cuda::DeviceAddress linked_state_ = 0;
    sys::cuda::DeviceAddress progress_ = 0;
};

}  // namespace pccl::device
