// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/machine_costs.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"

namespace pccl::costs {
namespace {

constexpr double kMicro = 1e-6;
constexpr double kNano = 1e-9;
constexpr double kLeastFigure = 1e-6;
constexpr double kMostFigure = 1e6;
constexpr std::size_t kLongestWord = 128;
constexpr int kMostTriesRead = 1000;
constexpr int kMostCores = 65536;

constexpr std::array kFigures = {
    NamedFigure{"beat", "a cache line handed to another core and back", kMicro,
                &MachineCosts::core_round_trip, true},
    NamedFigure{"shared_core_beat", "a wake-up and back on one core", kMicro,
                &MachineCosts::shared_core_round_trip, false},
    NamedFigure{"wake", "a wake-up on another core", kMicro, &MachineCosts::wake, true},
    NamedFigure{"direct_start", "a read of another process's memory, before its bytes", kMicro,
                &MachineCosts::direct_start, false},
    NamedFigure{"tcp_round", "TCP on loopback, from a send until it is read", kMicro,
                &MachineCosts::tcp_round, true},
    NamedFigure{"tcp_message", "TCP on loopback, a send or a receive", kMicro,
                &MachineCosts::tcp_message, true},
    NamedFigure{"tcp_byte", "TCP on loopback, a byte", kNano, &MachineCosts::tcp_byte, true},
};
constexpr std::array kByteFigures = {
    NamedByteFigures{"copy", "copied", &MachineCosts::copy},
    NamedByteFigures{"sum", "added up", &MachineCosts::sum},
    NamedByteFigures{"write", "written where another core has read", &MachineCosts::write},
    NamedByteFigures{"take", "copied from where another core has written", &MachineCosts::take},
    NamedByteFigures{"stream", "written past the caches", &MachineCosts::stream},
    NamedByteFigures{"take_streamed", "copied once another core has written past the caches",
                     &MachineCosts::take_streamed},
    NamedByteFigures{"direct", "read from another process's memory", &MachineCosts::direct},
    NamedByteFigures{"direct_again", "read there again, unchanged", &MachineCosts::direct_again},
};

constexpr Figure assumed(double seconds) { return {.seconds = seconds}; }

constexpr ByteFigures assumed_nanoseconds(double first, double second, double last, double memory) {
    return {assumed(first * kNano), assumed(second * kNano), assumed(last * kNano),
            assumed(memory * kNano)};
}

std::optional<double> figure_in(std::string_view word) {
    return number_in(word, kLeastFigure, kMostFigure);
}

Status wrong(std::string_view name, std::string_view right) {
    return Status::invalid_argument(concat("after ", name, " must come ", right));
}

Status parse_bytes(std::string_view name, std::string_view words, ByteFigures& into) {
    for (Figure& figure : into) {
        const std::string_view word = next_word(words);
        if (word == "-") continue;
        const auto nanoseconds = figure_in(word);
        if (!nanoseconds) return wrong(name, "nanoseconds, or -, for each of four levels");
        figure = {*nanoseconds * kNano, true};
    }
    return next_word(words).empty() ? Status::ok() : wrong(name, "four figures");
}

Status parse_caches(std::string_view words, std::array<std::size_t, kLevels - 1>& into) {
    constexpr std::size_t kMostBytes = std::size_t{1} << 40;
    for (std::size_t& bytes : into) {
        const auto found = number_in<std::size_t>(next_word(words), 1, kMostBytes);
        if (!found) return wrong("caches", "the bytes of three levels");
        bytes = *found;
    }
    const bool grows = std::ranges::is_sorted(into) && next_word(words).empty();
    return grows ? Status::ok() : wrong("caches", "the bytes of three levels, growing");
}

/// Parses a line about the origin of the figures; false for other lines.
Result<bool> parse_origin(std::string_view name, std::string_view word, Origin& into) {
    const auto text = [&](std::string& field) -> Result<bool> {
        if (word.empty() || word.size() > kLongestWord) return wrong(name, "a word");
        field = word;
        return true;
    };
    if (name == "machine") return text(into.machine);
    if (name == "boot") return text(into.boot);
    if (name == "date") return text(into.date);
    for (const auto& [number_name, field] :
         {std::pair{"took", &Origin::took}, {"load", &Origin::load}, {"spread", &Origin::spread}}) {
        if (name != number_name) continue;
        const auto number = number_in(word, 0.0, kMostFigure);
        if (!number) return wrong(name, "a number");
        into.*field = *number;
        return true;
    }
    if (name != "tries" && name != "quiet" && name != "cores") return false;
    const auto number = number_in(word, 0, name == "cores" ? kMostCores : kMostTriesRead);
    if (!number) return wrong(name, "a number");
    if (name == "tries") into.tries = *number;
    if (name == "cores") into.cores = *number;
    if (name == "quiet") into.is_quiet = *number != 0;
    return true;
}

Status parse_line(std::string_view line, MachineCosts& into) {
    const std::string_view name = next_word(line);
    if (name == "caches") return parse_caches(line, into.cache_bytes);
    for (const NamedByteFigures& named : kByteFigures)
        if (named.name == name) return parse_bytes(name, line, into.*named.figures);
    const std::string_view word = next_word(line);
    if (!next_word(line).empty()) return wrong(name.substr(0, kLongestWord), "one word");
    for (const NamedFigure& named : kFigures) {
        if (named.name != name) continue;
        const auto number = figure_in(word);
        if (!number) return wrong(name, "microseconds (of tcp_byte: nanoseconds)");
        into.*named.figure = {*number * named.unit, true};
        return Status::ok();
    }
    PCCL_ASSIGN_OR_RETURN(const bool is_known, parse_origin(name, word, into.origin));
    if (is_known) return Status::ok();
    return Status::invalid_argument(concat("no figure: ", name.substr(0, kLongestWord)));
}

/// Rounds to four significant digits.
double rounded(double value) {
    if (value <= 0) return 0;
    const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
    return std::round(value / unit) * unit;
}

/// Returns a number for parse(), within its limits even if the machine stood still during the
/// measurement.
std::string written(double value, double least) {
    return concat(static_cast<float>(rounded(std::min(std::max(least, value), kMostFigure))));
}

std::string written(const Figure& figure, double unit) {
    return figure.is_measured ? written(figure.seconds / unit, kLeastFigure) : "-";
}

void fill_up(Figure& figure, const Figure& other) {
    if (!figure.is_measured) figure = other;
}

/// Returns "0.21 us, measured"
std::string shown(const Figure& figure, double unit) {
    return concat(static_cast<float>(rounded(figure.seconds / unit)),
                  unit == kMicro ? " us, " : " ns, ", figure.is_measured ? "measured" : "default");
}

/// Returns why figures between two cores are defaults; empty if they were measured, or the reason
/// is not recorded.
std::string_view what_two_cores_lack(const MachineCosts& costs) {
    if (costs.is_of_two_cores() || costs.origin.cores == 0) return {};
    if (costs.origin.cores == 1) return ", on its only core: nothing that passes between cores";
    if (costs.core_round_trip.is_measured) return ", without all that passes between cores";
    return ", while no other core was free: nothing that passes between cores";
}

}  // namespace

MachineCosts::MachineCosts()
    : core_round_trip(assumed(0.2 * kMicro)),
      shared_core_round_trip(assumed(5 * kMicro)),
      wake(assumed(5 * kMicro)),
      direct_start(assumed(0.7 * kMicro)),
      tcp_round(assumed(14.5 * kMicro)),
      tcp_message(assumed(2 * kMicro)),
      tcp_byte(assumed(0.25 * kNano)),
      copy(assumed_nanoseconds(0.02, 0.04, 0.06, 0.1)),
      sum(assumed_nanoseconds(0.03, 0.05, 0.07, 0.12)),
      write(assumed_nanoseconds(0.08, 0.08, 0.08, 0.12)),
      take(assumed_nanoseconds(0.08, 0.08, 0.08, 0.12)),
      stream(assumed_nanoseconds(0.05, 0.05, 0.06, 0.08)),
      take_streamed(assumed_nanoseconds(0.1, 0.1, 0.1, 0.12)),
      direct(assumed_nanoseconds(0.08, 0.08, 0.08, 0.12)),
      direct_again(direct),
      cache_bytes{32 * kKiB, 1 * kMiB, 32 * kMiB} {}

Result<MachineCosts> MachineCosts::parse(std::string_view text) {
    if (text.size() > kMostBytes)
        return Status::invalid_argument(
            concat("costs of ", text.size(), " bytes; at most ", kMostBytes));
    MachineCosts costs;
    for (int number = 1; !text.empty(); ++number) {
        const std::string_view line = next_line(text);
        if (is_comment(line)) continue;
        const Status parsed = parse_line(line, costs);
        if (!parsed.is_ok()) return parsed.with_context(concat("line ", number));
    }
    return costs;
}

std::string MachineCosts::text() const {
    if (!is_measured()) return {};
    std::string text = "# What steps cost on this machine: us, and ns a byte by cache level.\n";
    const auto add = [&text](const auto&... parts) { text += concat(parts..., "\n"); };
    if (!origin.machine.empty()) add("machine ", origin.machine);
    if (origin.cores > 0) add("cores ", std::min(origin.cores, kMostCores));
    if (!origin.boot.empty()) add("boot ", origin.boot);
    if (!origin.date.empty()) add("date ", origin.date);
    if (origin.took > 0) add("took ", written(origin.took, 0));
    add("load ", written(origin.load, 0));
    add("tries ", std::min(origin.tries, kMostTriesRead));
    add("spread ", written(origin.spread, 0));
    add("quiet ", origin.is_quiet ? 1 : 0);
    add("caches ", cache_bytes[0], " ", cache_bytes[1], " ", cache_bytes[2]);
    for (const NamedFigure& named : kFigures)
        if (const Figure& figure = this->*named.figure; figure.is_measured)
            add(named.name, " ", written(figure, named.unit));
    for (const NamedByteFigures& named : kByteFigures) {
        text += named.name;
        for (const Figure& figure : this->*named.figures) text += " " + written(figure, kNano);
        text += '\n';
    }
    return text;
}

bool MachineCosts::is_measured() const {
    const auto measured = [](const Figure& figure) { return figure.is_measured; };
    return std::ranges::any_of(
               kFigures, [&](const NamedFigure& named) { return measured(this->*named.figure); }) ||
           std::ranges::any_of(kByteFigures, [&](const NamedByteFigures& named) {
               return std::ranges::any_of(this->*named.figures, measured);
           });
}

bool MachineCosts::is_of_two_cores() const {
    return std::ranges::all_of(kFigures, [this](const NamedFigure& named) {
        return !named.takes_two_cores || (this->*named.figure).is_measured;
    });
}

Level MachineCosts::level_of(std::size_t bytes) const {
    const auto* const holds = std::ranges::lower_bound(cache_bytes, bytes);
    const auto level = static_cast<Level>(holds - cache_bytes.begin());
    const bool is_crowded_out = level == Level::kLast && bytes > cache_bytes[2] / 2;
    return is_crowded_out ? Level::kMemory : level;
}

void MachineCosts::fill_up_from(const MachineCosts& other) {
    for (const NamedFigure& named : kFigures) fill_up(this->*named.figure, other.*named.figure);
    for (const NamedByteFigures& named : kByteFigures)
        for (std::size_t level = 0; level < kLevels; ++level)
            fill_up((this->*named.figures)[level], (other.*named.figures)[level]);
}

std::span<const NamedFigure> named_figures() { return kFigures; }
std::span<const NamedByteFigures> named_byte_figures() { return kByteFigures; }

std::string source_of(const MachineCosts& costs) {
    const Origin& origin = costs.origin;
    if (!costs.is_measured()) return "defaults, nothing was measured";
    if (origin.date.empty()) return "given, without a date";
    const std::string took =
        origin.took > 0 ? concat(" in ", std::round(origin.took), " ms") : std::string();
    return concat("measured ", origin.date, took, ", load ", static_cast<float>(origin.load),
                  origin.is_quiet ? "" : ", on a busy machine", what_two_cores_lack(costs));
}

std::vector<std::string> lines_of(const MachineCosts& costs) {
    std::vector<std::string> lines;
    lines.reserve(kFigures.size() + kByteFigures.size());
    for (const NamedFigure& named : kFigures)
        lines.push_back(concat(named.name, ": ", shown(costs.*named.figure, named.unit), " (",
                               named.what, ")"));
    constexpr std::array<std::string_view, kLevels> kNames = {"first", "second", "last", "memory"};
    for (const NamedByteFigures& named : kByteFigures) {
        std::string line = concat(named.name, ":");
        for (std::size_t level = 0; level < kLevels; ++level)
            line +=
                concat(" ", kNames[level], " ", shown((costs.*named.figures)[level], kNano), ";");
        line.back() = ' ';
        lines.push_back(concat(line, "(a byte ", named.what, ", by cache level)"));
    }
    const auto& caches = costs.cache_bytes;
    lines.push_back(concat("caches: ", caches[0], " ", caches[1], " ", caches[2],
                           " bytes (a core's own, and the one that cores share)"));
    return lines;
}

}  // namespace pccl::costs
