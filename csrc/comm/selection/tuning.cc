// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/selection/tuning.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <tuple>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/log/log.h"
#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/sys/host.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kLongestAlgorithm = 96;

}  // namespace

std::string topology_hash() {
    constexpr std::size_t kMostNodes = 64;  // bytes: "0-1"
    const auto nodes = sys::read_start("/sys/devices/system/node/online", kMostNodes);
    Digest digest;
    digest.add(concat(sys::machine_name(), "/", sys::allowed_cores().count(), "/",
                      nodes.is_ok() ? *nodes : std::string()));
    for (const std::size_t bytes : sys::cache_bytes()) digest.add(concat("/", bytes));
    return digest.text();
}

std::string tuned_name(const schedule::ScheduleSource& capsule) {
    return concat(capsule.name, "@", hex_digits(capsule.digest));
}

Status Tuning::add(std::string_view text) {
    std::string_view words = text;
    const std::string_view first = next_word(words);
    if (first != "topology" && first != "capsule") {
        PCCL_ASSIGN_OR_RETURN(TuningLine line, parse_line(text));
        lines_.push_back(std::move(line));
        return Status::ok();
    }
    const std::string_view name = next_word(words);
    if (name.empty() || name.size() > kLongestAlgorithm || !next_word(words).empty())
        return Status::invalid_argument(concat("after ", first, " must come one word"));
    if (first == "topology")
        topology_ = name;
    else
        capsules_.emplace_back(name);
    return Status::ok();
}

Result<Tuning::TuningLine> Tuning::parse_line(std::string_view text) {
    const std::string_view kind_word = next_word(text);
    const auto kind = schedule::collective_named(kind_word);
    if (!kind) return Status::invalid_argument(concat("no collective: ", kind_word.substr(0, 32)));
    const auto ranks = number_in(next_word(text), 0, std::numeric_limits<int>::max());
    const auto bytes =
        number_in(next_word(text), std::int64_t{0}, std::numeric_limits<std::int64_t>::max());
    const std::string_view algorithm = next_word(text);
    if (!ranks || !bytes || algorithm.empty() || algorithm.size() > kLongestAlgorithm ||
        !next_word(text).empty())
        return Status::invalid_argument(
            concat("after ", kind_word, " must come ranks, bytes and an algorithm"));
    return TuningLine{*kind, *ranks, static_cast<std::size_t>(*bytes), std::string(algorithm)};
}

Result<Tuning> Tuning::parse(std::string_view text) {
    if (text.size() > kMostBytes)
        return Status::invalid_argument(
            concat("a tuning of ", text.size(), " bytes; at most ", kMostBytes));
    Tuning tuning;
    for (int number = 1; !text.empty(); ++number) {
        const std::string_view line = next_line(text);
        if (is_comment(line)) continue;
        PCCL_TRY(tuning.add(line).with_context(concat("line ", number)));
    }
    return tuning;
}

std::string_view Tuning::fastest(CollectiveKind kind, int ranks, std::size_t bytes) const {
    const TuningLine* best = nullptr;
    for (const TuningLine& line : lines_) {
        if (line.kind != kind || line.ranks > ranks || line.from_bytes > bytes) continue;
        if (best == nullptr ||
            std::tie(best->ranks, best->from_bytes) <= std::tie(line.ranks, line.from_bytes))
            best = &line;
    }
    return best == nullptr ? std::string_view() : best->algorithm;
}

bool Tuning::has_measured(const schedule::ScheduleSource& capsule) const {
    return std::ranges::find(capsules_, tuned_name(capsule)) != capsules_.end();
}

std::string tuning_path() {
    const Config& config = process_config();
    if (!config.tuning_file.empty() || config.cache_folder.empty()) return config.tuning_file;
    return concat(config.cache_folder, "/pccl/tuning-", sys::machine_name(), ".txt");
}

Result<std::string> load_tuning() {
    const std::string path = tuning_path();
    std::error_code error;
    if (path.empty() || (!std::filesystem::exists(path, error) && !error)) return std::string();
    const auto ignore = [&](const auto&... why) {
        log(LogLevel::kWarning, path, " is ignored: ", why..., "; pccl tune writes a new one");
        return std::string();
    };
    auto text = sys::read_start(path, Tuning::kMostBytes + 1);
    if (!text.is_ok() && !process_config().tuning_file.empty())
        return text.status().with_context("PCCL_TUNING_FILE");
    if (!text.is_ok()) return ignore(text.status().message());
    const Result<Tuning> tuning = Tuning::parse(*text);
    if (!tuning.is_ok()) return ignore(tuning.status().message());
    if (tuning->topology().empty()) return text;
    const std::string here = topology_hash();
    if (tuning->topology() == here) return text;
    return ignore("it was measured on topology ", tuning->topology(), ", this one is ", here);
}

}  // namespace pccl::comm
