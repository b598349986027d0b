#include "tests/cpp/schedule/mutation_report.h"

#include "csrc/base/text.h"
#include "tests/cpp/schedule/catalogue.h"
#include "tests/cpp/schedule/judge.h"

namespace pccl::schedule::testing {

Fate fate_of(const Schedule& mutant, Placement placement) {
    const auto verdict = verify(mutant, placement);
    if (!verdict.is_ok() || !verdict.value().bit_identical) return Fate::kKilled;
    return judge(mutant, placement).empty() ? Fate::kEquivalent : Fate::kSurvived;
}

void mutate_and_verify(const Schedule& schedule, Report& report) {
    for_each_mutant(schedule, [&](const Mutant& mutant) {
        Tally& tally = report.tallies[static_cast<std::size_t>(mutant.kind)];
        for (const Placement placement : placements(schedule.shape.kind)) {
            const std::string line = concat(
                to_string(mutant.kind), ": ",
                placement == Placement::kInPlace ? "in place: " : "out of place: ", mutant.what);
            switch (fate_of(mutant.schedule, placement)) {
                case Fate::kKilled:
                    ++tally.killed;
                    break;
                case Fate::kEquivalent:
                    ++tally.equivalent;
                    report.equivalents.push_back(line);
                    break;
                case Fate::kSurvived:
                    ++tally.survived;
                    report.survivors.push_back(line);
                    break;
            }
        }
    });
}

}  // namespace pccl::schedule::testing
