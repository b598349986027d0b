// Hints: where this rank saw its peers' inputs when a launch like this one last ran.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "csrc/abi/device_team.h"
#include "csrc/base/export.h"
#include "csrc/schedule/schedule.h"

namespace pccl::device {

/// What makes launches alike.
struct HintKey {
    schedule::CollectiveKind kind{};
    const std::byte* input = nullptr;
    const std::byte* output = nullptr;
    std::size_t bytes = 0;
    bool operator==(const HintKey&) const = default;
};

class PCCL_API Hints {
   public:
    /// Of memory that kernels write and the host reads.
    explicit Hints(std::span<abi::Hint, abi::kMostHints> memory) : memory_(memory) {}

    /// The hint for launches like `key`, empty at first. Where there are too many kinds of them, it
    /// takes the place of the one that was used longest ago; kernels may still write that one's.
    abi::Hint& of(const HintKey& key);
    /// Where `hint` says that `peer`'s input was; 0 when it says nothing.
    [[nodiscard]] static std::uint64_t input_of(abi::Hint& hint, int peer);

   private:
    struct Use {
        HintKey key;
        std::uint64_t last = 0;  // 0: never
    };
    std::span<abi::Hint, abi::kMostHints> memory_;
    std::array<Use, abi::kMostHints> uses_{};  // of the hint at the same place
    std::uint64_t now_ = 0;
};

}  // namespace pccl::device
