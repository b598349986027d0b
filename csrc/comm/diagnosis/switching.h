// SPDX-License-Identifier: Apache-2.0

// Progress of a rank to another phase of the network, as it answers requests (phase_call.h explains
// the stages).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/bytes.h"
#include "csrc/base/ids.h"

namespace pccl::comm {

struct PCCL_API Switching {
    enum class Stage : std::uint8_t {
        kNone,      // it has not called a switch yet
        kCalled,    // operations that it has issued are still in flight
        kReady,     // none is in flight, and none starts until the outcome is received
        kGivenUp,   // it does not take part, because of `why`
        kOrphaned,  // rank 0 is gone without sending the outcome; `why`: this rank was not ready
        kDone,      // it has the outcome, and continues
    };
    /// Counts of operations in one of its groups.
    struct GroupProgress {
        std::uint64_t group = 0;  // derived from its identity
        std::uint32_t ranks = 0;  // number of ranks of the group
        std::uint64_t collectives = 0;
        std::uint64_t sent = 0;  // messages
        std::uint64_t received = 0;
    };
    enum class Outcome : std::uint8_t {
        kStayed,
        kSwitched,  // also: prepared, in a dry run
        kUnknown,   // rank 0 is gone, and no rank can read the switches
    };
    /// Result of a switch. Rank 0, or its successor, sends it; ranks that have received it forward
    /// it.
    struct SwitchResult {
        std::uint64_t number = 0;  // of the switch; 0: none yet
        Outcome outcome = Outcome::kStayed;
        Status why{};          // why there is no report
        bool had_all = true;   // false: some ranks had not called, so that they were not notified
        std::string report{};  // from the controller; empty if it is longer than kLongestReport
    };
    static constexpr std::size_t kMostGroups = 32;
    static constexpr std::size_t kLongestReport = 3072;

    std::uint64_t number = 0;  // of its latest call
    Stage stage = Stage::kNone;
    std::string proposal{};    // "pairs"; "pairs, a dry run"
    std::uint64_t phases = 0;  // digest of its phases
    Status why{};
    std::vector<GroupProgress> groups{};  // at most kMostGroups
    SwitchResult switch_result{};

    void write(ByteWriter& out) const;
    /// Parses untrusted bytes; kInvalidArgument names the position.
    Status read(ByteReader& in);
};

/// State of a group's switches, for the switching thread and for requests.
class SwitchState {
   public:
    void publish(Switching now);
    [[nodiscard]] Switching published() const;

    /// Records that a rank has requested the status and receives this answer.
    void note_shown(Rank rank, const Switching::SwitchResult& switch_result);
    /// Returns whether a rank has received the result of that switch, or of a later one.
    [[nodiscard]] bool has_shown(Rank rank, std::uint64_t number) const;
    /// Returns the number of requests by a rank.
    [[nodiscard]] std::uint64_t questions_of(Rank rank) const;

   private:
    mutable std::mutex mutex_;
    Switching published_;
    struct Requester {
        std::uint64_t questions = 0;
        std::uint64_t shown = 0;  // number of the latest switch whose result it has received
    };
    std::map<Rank, Requester> requesters_;
};

}  // namespace pccl::comm
