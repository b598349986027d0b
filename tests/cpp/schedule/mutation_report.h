// Which mutants the verifier finds.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "csrc/schedule/verifier/verifier.h"
#include "tests/cpp/schedule/mutation.h"

namespace pccl::schedule::testing {

/// Killed: refused by the verifier, or found not to give every rank the same bits.
/// Equivalent: a right schedule in its own way, like one that has lost a dependency which others
/// imply, or one that sends the same data to the same ranks in another order. Who decides is
/// judge() (judge.h), which shares no code with the verifier. Survived: the verifier lets pass what
/// the judge does not.
enum class Fate { kKilled, kEquivalent, kSurvived };

/// For mutants of a schedule that gives every rank the same bits.
Fate fate_of(const Schedule& mutant, Placement placement);

struct Tally {
    int killed = 0;
    int equivalent = 0;
    int survived = 0;
};

struct Report {
    std::array<Tally, kMutationKinds> tallies;  // by MutationKind
    std::vector<std::string> equivalents;
    std::vector<std::string> survivors;
};

/// Adds the fate of every mutant of `schedule` under every placement of its collective.
void mutate_and_verify(const Schedule& schedule, Report& report);

}  // namespace pccl::schedule::testing
