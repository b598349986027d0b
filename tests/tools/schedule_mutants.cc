// SPDX-License-Identifier: Apache-2.0

// Reports how many small faults the schedule verifier finds: schedule_mutants [--equivalents]
//
// Puts every mutant of tests/cpp/schedule/mutation.h into every algorithm for 2 to 8 ranks and
// shows it to the verifier, in place and out of place. Prints a table with the kill rate of each
// kind of fault, as an independent judge finds them, and the mutants that survive; with
// --equivalents also those that are right schedules in their own way. Exit status 1 if a mutant
// survives.
#include <iomanip>
#include <iostream>
#include <string_view>

#include "tests/cpp/schedule/catalogue.h"
#include "tests/cpp/schedule/mutation_report.h"
#include "tests/cpp/schedule/samples.h"

namespace {

using namespace pccl::schedule;
using namespace pccl::schedule::testing;

Report report_on_everything() {
    Report report;
    for (const int ranks : {2, 3, 4, 5, 6, 8}) {
        mutate_and_verify(two_lane_ring_all_reduce(ranks), report);
        for (const SourcePtr& source : all_sources()) {
            for (const pccl::Rank root : {0, ranks - 1}) {
                if (root >= roots(source, ranks)) continue;
                for (const int multiple : {1, 2}) {
                    const Shape shape = shape_of(source, ranks, root, multiple);
                    mutate_and_verify(generate(*source, shape).value(), report);
                }
            }
        }
    }
    return report;
}

void print_row(std::string_view name, const Tally& tally) {
    const int killed = tally.of(Fate::kKilled);
    const int faulty = killed + tally.of(Fate::kSurvived);
    std::cout << std::left << std::setw(20) << name << std::right << std::setw(10) << tally.all();
    for (const Fate fate :
         {Fate::kEquivalent, Fate::kReordered, Fate::kHarmless, Fate::kKilled, Fate::kSurvived})
        std::cout << std::setw(12) << tally.of(fate);
    std::cout << std::setw(11) << std::fixed << std::setprecision(2)
              << (faulty == 0 ? 100.0 : 100.0 * killed / faulty) << "%\n";
}

void print_list(std::string_view title, const std::vector<std::string>& lines) {
    std::cout << '\n' << title << '\n';
    for (const std::string& line : lines) std::cout << "  " << line << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    const bool list_equivalents = argc > 1 && std::string_view(argv[1]) == "--equivalents";
    const Report report = report_on_everything();

    std::cout << "fault                  mutants  equivalent   reordered    harmless      killed"
                 "    survived   kill rate\n";
    for (std::size_t i = 0; i < report.tallies.size(); ++i)
        print_row(to_string(static_cast<MutationKind>(i)), report.tallies[i]);
    print_row("all", report.total());
    if (list_equivalents) print_list("equivalent:", report.equivalents);
    if (!report.survivors.empty()) print_list("survived:", report.survivors);
    return report.survivors.empty() ? 0 : 1;
}
