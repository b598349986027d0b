// How far a rank is on its way to another phase of the network: what it tells those who ask how it
// fares (phase_call.h says what the stages mean).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/base/bytes.h"
#include "csrc/base/ids.h"
#include "csrc/base/status.h"

namespace pccl::comm {

struct PCCL_API Switching {
    enum class Stage : std::uint8_t {
        kNone,      // it has called for no switch yet
        kCalled,    // operations that it has issued are still under way
        kReady,     // nothing is, and nothing new begins until it hears how this ended
        kGivenUp,   // it will not take part, `why`
        kOrphaned,  // rank 0 is gone, and has not told it how this ended; `why`: it was not ready
        kDone,      // it knows how it ended, and goes on
    };
    /// What has gone through one of its groups.
    struct GroupProgress {
        std::uint64_t group = 0;  // stands for its identity
        std::uint32_t ranks = 0;  // of the group
        std::uint64_t collectives = 0;
        std::uint64_t sent = 0;  // messages
        std::uint64_t received = 0;
    };
    enum class Outcome : std::uint8_t {
        kStayed,
        kSwitched,  // or prepared, in a dry run
        kUnknown,   // rank 0 is gone, and nobody can read the switches
    };
    /// How a switch ended: rank 0 tells, or its successor; who has heard it, repeats it.
    struct SwitchResult {
        std::uint64_t number = 0;  // of the switch; 0: none yet
        Outcome outcome = Outcome::kStayed;
        Status why{};          // why there is no report
        bool had_all = true;   // false: some ranks had not called, so that nobody has told them
        std::string report{};  // of the controller; empty where it is longer than kLongestReport
    };
    static constexpr std::size_t kMostGroups = 32;
    static constexpr std::size_t kLongestReport = 3072;

    std::uint64_t number = 0;  // of its latest call
    Stage stage = Stage::kNone;
    std::string proposal{};    // "pairs"; "pairs, a dry run"
    std::uint64_t phases = 0;  // digest of those that it knows
    Status why{};
    std::vector<GroupProgress> groups{};  // at most kMostGroups of them
    SwitchResult switch_result{};

    void write(ByteWriter& out) const;
    /// From bytes of any origin; kInvalidArgument names the place.
    Status read(ByteReader& in);
};

/// What a group keeps of it, for the thread that switches and for ranks that ask.
class SwitchState {
   public:
    void tell(Switching now);
    [[nodiscard]] Switching told() const;

    /// A rank has asked, and gets this answer.
    void note_shown(Rank rank, const Switching::SwitchResult& switch_result);
    /// Whether a rank has got how that switch, or a later one, ended.
    [[nodiscard]] bool has_shown(Rank rank, std::uint64_t number) const;
    /// How often a rank has asked.
    [[nodiscard]] std::uint64_t questions_of(Rank rank) const;

   private:
    mutable std::mutex mutex_;
    Switching told_;
    struct Asker {
        std::uint64_t questions = 0;
        std::uint64_t shown = 0;  // the number of the latest switch whose end it has got
    };
    std::map<Rank, Asker> askers_;
};

}  // namespace pccl::comm
