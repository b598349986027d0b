// SPDX-License-Identifier: Apache-2.0

// Which mutants the verifier finds.
#pragma once

#include <array>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "csrc/schedule/verifier/verifier.h"
#include "tests/cpp/schedule/mutation.h"

namespace pccl::schedule::testing {

/// What the verifier says of a mutant, and judge() (judge.h), which shares no code with it.
/// Killed: both find fault. Survived: only the judge does. Harmless: only the verifier does, as
/// where it forbids what turns out right in each order that the judge tries. Equivalent: neither
/// does, as where a dependency is lost that others imply. Reordered: neither does, but ranks may
/// get other bits of floats, which the verdict says.
enum class Fate { kKilled, kSurvived, kHarmless, kEquivalent, kReordered };
inline constexpr std::size_t kFates = 5;

/// For mutants of a schedule that gives every rank the same bits.
Fate fate_of(const Schedule& mutant, Placement placement);

/// How many mutants met each fate.
struct Tally {
    std::array<int, kFates> counts{};

    [[nodiscard]] int of(Fate fate) const { return counts.at(static_cast<std::size_t>(fate)); }
    [[nodiscard]] int all() const { return std::accumulate(counts.begin(), counts.end(), 0); }
    Tally& operator+=(const Tally& other);
};

struct Report {
    std::array<Tally, kMutationKinds> tallies;  // by MutationKind
    std::vector<std::string> equivalents;
    std::vector<std::string> survivors;

    [[nodiscard]] Tally total() const;
};

/// Adds the fate of every mutant of `schedule` under every placement of its collective.
void mutate_and_verify(const Schedule& schedule, Report& report);

}  // namespace pccl::schedule::testing
