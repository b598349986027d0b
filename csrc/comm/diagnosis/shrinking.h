// How far a rank is on its way from its group into a smaller one: what it tells those who ask how
// it fares in the old one (agreement.h says what the stages mean).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/sys/crypto/hmac.h"

namespace pccl::comm {

struct Shrinking {
    enum class Stage : std::uint8_t {
        kNone,       // it is not shrinking the group
        kProposed,   // it wants to go on with a list of ranks
        kReady,      // all of them want the same; it takes connections of the smaller group
        kConfirmed,  // all of them are ready; it goes on once all have confirmed
        kDoubtful,   // it has confirmed, but `lost` cannot: it goes on only if another has
        kDecided,    // it has gone on
    };
    /// Told apart by a random number: a rank may call shrink again.
    using Call = std::array<std::uint8_t, 16>;
    static constexpr std::size_t kMostNamed = 64;

    Stage stage = Stage::kNone;
    Rank lost = kNoRank;
    Call call{};
    sys::Digest list{};            // of those who stay
    sys::Digest pact{};            // of the list and the calls of all who stay; from kReady on
    int staying = 0;               // how many that are
    std::vector<Rank> left_out{};  // at most kMostNamed of the others

    bool operator==(const Shrinking&) const = default;
};

/// kUnavailable: `rank` has gone on, and not with this one.
[[nodiscard]] Status gone_on(Rank rank, const Shrinking& said);

/// What a group keeps of its shrinks, for the thread that shrinks it and for ranks that ask.
class ShrinkState {
   public:
    /// kInvalidArgument while another thread shrinks the group, once it has been shrunk, and where
    /// `left_out` lacks one of those that this rank has confirmed to leave out before.
    [[nodiscard]] Status begin(std::span<const Rank> left_out);
    /// Stage::kNone ends what began.
    void tell(const Shrinking& now);
    /// From now on all of them stay out, whatever becomes of this shrink.
    void renounce(std::span<const Rank> left_out);

    [[nodiscard]] Shrinking told() const;
    [[nodiscard]] std::vector<Rank> renounced() const;

   private:
    mutable std::mutex mutex_;
    bool is_under_way_ = false;
    Shrinking told_;
    std::vector<Rank> renounced_;
};

}  // namespace pccl::comm
