// SPDX-License-Identifier: Apache-2.0

// What every kind of one-sided access promises (csrc/transport/rma.h), as one suite. A kind joins
// with a file that instantiates RmaContract over an RmaCandidate; the tests are in
// rma_contract_test.cc.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/mapping.h"
#include "csrc/transport/rma.h"
#include "tests/contract/transport_contract.h"
#include "tests/fakes/forked_child.h"
#include "tests/fakes/late_cuda.h"
#include "tests/fakes/loopback/fault_plan.h"

namespace pccl::transport::contract {

struct RmaCandidate {
    std::string name;
    /// As of Candidate.
    std::function<Result<MemberMaker>()> new_world;
    /// Null: what the transport itself has.
    std::function<std::shared_ptr<RmaTransport>()> one_sided = {};
    /// Whether registered memory is in files that peers can map.
    bool in_files = false;
    /// On which GPU memory is, of the initiator and of the target; -1: of the host.
    std::array<int, 2> gpus{-1, -1};
    /// Bytes whose copy takes a while.
    std::size_t much = 6 * kMiB;
    /// Lanes of a bundle, and helper threads of each end; none: there is no bundle.
    std::size_t lanes = 0;
    int helpers = 0;

    friend std::ostream& operator<<(std::ostream& out, const RmaCandidate& candidate) {
        return out << candidate.name;
    }
};

/// Those of all candidates that have some.
fakes::LateCudaDriver& gpus();

/// A world that several candidates share.
Result<MemberMaker> loopback_world(const loopback::FaultPlan& faults);

inline std::string rma_candidate_name(const testing::TestParamInfo<RmaCandidate>& test) {
    return test.param.name;
}

/// Zeroes, registered for as long as it lives.
class Registered {
   public:
    /// On a GPU, which has adopted it, or of the host (-1).
    Registered(RmaTransport& transport, Mapping mapping, int gpu);

    [[nodiscard]] std::span<std::byte> bytes() const { return mapping_.memory(); }
    [[nodiscard]] const Registration* registration() const { return registration_.get(); }
    [[nodiscard]] const abi::MemoryDescriptor& descriptor() const { return descriptor_; }
    /// Afterwards the memory is this object's alone.
    void end() { registration_.reset(); }

   private:
    Mapping mapping_;
    std::unique_ptr<Registration> registration_;
    abi::MemoryDescriptor descriptor_;
};

/// One process with a link to the other.
struct RmaEnd {
    RmaEnd(const MemberMaker& make, const RmaCandidate& candidate, Rank self);
    [[nodiscard]] Registered memory(std::size_t bytes, std::byte value = {}) const;

    std::unique_ptr<Process> process;
    std::shared_ptr<RmaTransport> rma;
    bool in_files;
    int gpu;
    std::size_t lanes;
    int helpers;
    std::unique_ptr<RmaLink> link;
};

/// What two ends that are to be connected tell each other.
struct RmaGroup {
    static constexpr GroupId kId{7, 7};
    static constexpr Secret kSecret{8, 8};
    /// Rank `self` opens its stream to the other; the link is there once both have done so.
    static void connect(RmaEnd& end, Rank self, const PeerAddress& peer);
};

class RmaContract : public testing::TestWithParam<RmaCandidate> {
   protected:
    void SetUp() override;
    void TearDown() override;
    /// This process has both.
    RmaEnd& initiator() { return *ends_[0]; }
    RmaEnd& target() { return *ends_[1]; }
    /// Carries both on until `look` is true; fails the test when that takes too long.
    void pump(const std::function<bool()>& look);
    /// Posts all, and waits for as many completions as there were posts: the first error, if any.
    Status complete(RmaOp op, std::vector<RmaPiece> pieces);
    Status write(const Registered& from, const abi::MemoryDescriptor& to, std::size_t bytes);
    Status read(const Registered& into, const abi::MemoryDescriptor& from, std::size_t bytes);
    /// All of `mine`, while another thread carries the target on.
    Status transfer(RmaOp op, const Registered& mine, const abi::MemoryDescriptor& theirs);
    /// Transfers as long as that is ok, and calls `look` each time.
    void repeat_until_refused(RmaOp op, const Registered& mine, const abi::MemoryDescriptor& theirs,
                              const std::function<void()>& look);
    /// Of the target, the next.
    std::string await_notification();

    MemberMaker make_;
    std::vector<std::unique_ptr<RmaEnd>> ends_;
};

/// What one process tells another before their links are there, over pipes.
class Messages {
   public:
    Messages();
    ~Messages();
    Messages(const Messages&) = delete;
    Messages& operator=(const Messages&) = delete;

    void send_to_parent(const std::string& text);
    void send_to_child(const std::string& text);
    std::string of_child();
    std::string of_parent();

   private:
    std::array<int, 4> fds_{};
};

/// The initiator is this process, the target a child.
class RmaProcesses : public RmaContract {
   protected:
    static constexpr std::size_t kBytes = 8 * kMiB;
    /// What a child does, over and over, until it is killed; with the memory of its parent.
    using ProcessBody = std::function<void(RmaEnd&, const abi::MemoryDescriptor&)>;

    void SetUp() override;
    void start(const ProcessBody& body);
    void kill() { child_.reset(); }

    Messages messages_;
    std::optional<fakes::ForkedChild> child_;
    std::optional<Registered> mine_;  // kBytes
    abi::MemoryDescriptor theirs_{};  // kBytes, of kOld
};

inline constexpr std::byte kOld{0x11};
inline constexpr std::byte kNew{0xEE};
[[nodiscard]] bool are_all(std::span<const std::byte> bytes, std::byte value);

/// Polls until it has completed something, at most until `timeout` is over, while `meanwhile` is
/// called: what was completed, or the link's error.
Result<RmaCompletion> next_completion(RmaLink& link, const std::function<void()>& meanwhile);

std::span<const std::byte> notification_of(const std::string& text);

}  // namespace pccl::transport::contract
