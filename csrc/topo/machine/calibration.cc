// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/machine/calibration.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::topo {
namespace {

constexpr std::string_view kPrefix = "links-";
constexpr int kMostNuma = 4095;

std::optional<double> rate(std::string_view word) { return number_in(word, 1e-6, 1e6); }

/// Parses the last two words of a line: microseconds and GB/s.
std::optional<LinkTimes> times_in(std::string_view text) {
    const auto microseconds = number_in(next_word(text), 0.0, 1e9);
    const auto bandwidth = rate(next_word(text));
    if (!microseconds || !bandwidth || !next_word(text).empty()) return std::nullopt;
    return LinkTimes{*microseconds * 1e-6, *bandwidth};
}

std::string folder_of(const Config& config) { return concat(config.cache_folder, "/pccl"); }

}  // namespace

Status Calibration::parse_line(std::string_view text) {
    const std::string_view kind = next_word(text);
    if (kind == "reduce") {
        reduce_ = rate(next_word(text));
        if (reduce_ && next_word(text).empty()) return Status::ok();
        return Status::invalid_argument("after reduce must come GB/s");
    }
    if (kind == "network") return parse_named(text, "an interface, a host", networks_);
    if (kind == "gpus") return parse_named(text, "two bus ids", gpus_);
    if (kind != "memory" && kind != "sockets")
        return Status::invalid_argument(
            concat("no memory, sockets, network, gpus or reduce: ", kind.substr(0, 32)));
    const auto a = number_in(next_word(text), 0, kMostNuma);
    const auto b = number_in(next_word(text), 0, kMostNuma);
    const auto times = times_in(text);
    if (!a || !b || !times)
        return Status::invalid_argument(
            concat("after ", kind, " must come two NUMA nodes, microseconds and GB/s"));
    const MeasuredLink link = kind == "memory" ? MeasuredLink::kMemory : MeasuredLink::kSockets;
    links_.push_back({link, *a, *b, *times});
    return Status::ok();
}

Status Calibration::parse_named(std::string_view text, std::string_view ends, NamedLines& into) {
    const std::string_view from = next_word(text);
    const std::string_view to = next_word(text);
    const auto times = times_in(text);
    if (!times)
        return Status::invalid_argument(
            concat("after this kind must come ", ends, ", microseconds and GB/s"));
    into.push_back({std::string(from), std::string(to), *times});
    return Status::ok();
}

Result<Calibration> Calibration::parse(std::string_view text) {
    if (text.size() > kMostBytes)
        return Status::invalid_argument(
            concat("measurements of ", text.size(), " bytes; at most ", kMostBytes));
    Calibration calibration;
    calibration.text_ = text;
    for (int number = 1; !text.empty(); ++number) {
        const std::string_view line = next_line(text);
        if (is_comment(line)) continue;
        const Status parsed = calibration.parse_line(line);
        if (!parsed.is_ok()) return parsed.with_context(concat("line ", number));
    }
    return calibration;
}

std::optional<LinkTimes> Calibration::between(MeasuredLink link, int a, int b) const {
    const auto fits = [](int wanted, int actual) { return wanted < 0 || wanted == actual; };
    std::optional<LinkTimes> slowest;
    for (const CalibrationLine& line : links_) {
        if (line.link != link ||
            !((fits(a, line.a) && fits(b, line.b)) || (fits(a, line.b) && fits(b, line.a))))
            continue;
        if (!slowest) slowest = line.times;
        slowest->latency = std::max(slowest->latency, line.times.latency);
        slowest->bandwidth = std::min(slowest->bandwidth, line.times.bandwidth);
    }
    return slowest;
}

std::optional<LinkTimes> Calibration::find(const NamedLines& lines, std::string_view from,
                                           std::string_view to) {
    for (const NamedLine& line : lines)
        if (line.from == from && line.to == to) return line.times;
    return std::nullopt;
}

std::optional<LinkTimes> Calibration::network(std::string_view interface,
                                              std::string_view host) const {
    return find(networks_, interface, host);
}

std::optional<LinkTimes> Calibration::gpus(std::string_view from, std::string_view to) const {
    return find(gpus_, from, to);
}

std::string calibration_path(std::string_view digest, const Config& config) {
    if (config.cache_folder.empty()) return {};
    return concat(folder_of(config), "/", kPrefix, digest, ".txt");
}

Calibration load_calibration(std::string_view digest, const Config& config) {
    const std::string path = calibration_path(digest, config);
    std::error_code error;
    if (path.empty() || !std::filesystem::exists(path, error)) return {};
    auto text = sys::read_file(path, Calibration::kMostBytes);
    auto calibration =
        text.is_ok() ? Calibration::parse(*text) : Result<Calibration>(text.status());
    if (calibration.is_ok()) return *std::move(calibration);
    log(LogLevel::kWarning, path, " is ignored: ", calibration.status().message(),
        "; pccl topo --measure writes a new one");
    return {};
}

bool has_calibrations(const Config& config) {
    if (config.cache_folder.empty()) return false;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder_of(config), error), end;
         !error && entry != end; entry.increment(error))
        if (entry->path().filename().string().starts_with(kPrefix)) return true;
    return false;
}

}  // namespace pccl::topo
