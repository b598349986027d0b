// How a switch ended, where rank 0 is gone before all have heard it: the lowest rank that is left
// tells, and the others follow it as they followed rank 0.
//
// It asks all others first, as one may have heard it. If none has, and all were ready, rank 0 may
// have had the switches commit: what these show decides. If one was not ready, rank 0 has not.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "csrc/comm/phase/phase_talk.h"

namespace pccl::comm {

/// Reads the switches: whether they have the phase that was switched to.
using ReadBack = std::function<Result<bool>()>;

class CoordinatorFailover {
   public:
    /// Of a rank other than 0 that has been ready. `read_back`: null, no switch can be read here.
    /// `answer_timeout`: with ranks that do not find out by themselves that rank 0 is gone.
    CoordinatorFailover(PhaseTalk& talk, ReadBack read_back, Duration answer_timeout)
        : talk_(talk), read_back_(std::move(read_back)), last_(Deadline::after(answer_timeout)) {}

    /// `lost`: why rank 0 is taken for gone. All that are left get the same result. kAborted where
    /// this thread is interrupted.
    [[nodiscard]] Result<Switching::SwitchResult> settle(const Status& lost);

   private:
    using Stage = Switching::Stage;

    /// Nothing where that rank is gone, too, or takes no part.
    [[nodiscard]] Result<std::optional<Switching::SwitchResult>> hear_from(Rank successor);
    [[nodiscard]] Result<Switching::SwitchResult> decide(const Status& lost);
    /// Asks until it is known whether the rank was ready, or how it ended.
    [[nodiscard]] Status hear_out(Rank rank);
    /// Whether nothing more is to be heard from the rank; notes it if it was not ready.
    [[nodiscard]] bool takes_no_part(Rank rank);
    [[nodiscard]] Switching::SwitchResult as_switches_show(const Status& lost) const;

    PhaseTalk& talk_;
    const ReadBack read_back_;
    const Deadline last_;
    bool were_ready_ = true;  // all of them, as far as this rank knows
};

}  // namespace pccl::comm
