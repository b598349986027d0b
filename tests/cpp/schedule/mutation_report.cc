// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/schedule/mutation_report.h"

#include "csrc/base/text/text.h"
#include "tests/cpp/schedule/catalogue.h"
#include "tests/cpp/schedule/judge.h"

namespace pccl::schedule::testing {

Fate fate_of(const Schedule& mutant, Placement placement) {
    const auto verdict = verify(mutant, placement);
    const bool is_right = judge(mutant, placement).empty();
    if (!verdict.is_ok()) return is_right ? Fate::kHarmless : Fate::kKilled;
    if (!is_right) return Fate::kSurvived;
    return verdict.value().bit_identical ? Fate::kEquivalent : Fate::kReordered;
}

Tally& Tally::operator+=(const Tally& other) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts.at(i) += other.counts.at(i);
    return *this;
}

Tally Report::total() const {
    Tally total;
    for (const Tally& tally : tallies) total += tally;
    return total;
}

void mutate_and_verify(const Schedule& schedule, Report& report) {
    for_each_mutant(schedule, [&](const Mutant& mutant) {
        Tally& tally = report.tallies[static_cast<std::size_t>(mutant.kind)];
        for (const Placement placement : placements(schedule.shape.kind)) {
            const Fate fate = fate_of(mutant.schedule, placement);
            ++tally.counts.at(static_cast<std::size_t>(fate));
            const std::string line = concat(
                to_string(mutant.kind), ": ",
                placement == Placement::kInPlace ? "in place: " : "out of place: ", mutant.what);
            if (fate == Fate::kEquivalent) report.equivalents.push_back(line);
            if (fate == Fate::kSurvived) report.survivors.push_back(line);
        }
    });
}

}  // namespace pccl::schedule::testing
