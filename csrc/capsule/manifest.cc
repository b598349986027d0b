// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/manifest.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/capsule/extent.h"
#include "csrc/capsule/limits.h"
#include "csrc/capsule/sizes.h"

namespace pccl::capsule {
namespace {

using nlohmann::json;
using schedule::Buffer;
using schedule::CollectiveKind;
using schedule::Schedule;
using schedule::Shape;

constexpr int kIndent = 1;

Status check_text(std::string_view key, const std::string& text) {
    if (text.size() <= kLongestText) return Status::ok();
    return refuse(key, " has ", text.size(), " bytes; at most ", kLongestText, " are kept");
}

json buffers_of(const Schedule& schedule) {
    const Shape& shape = schedule.shape;
    int scratch = 0;
    for (const auto& program : schedule.programs)
        scratch = std::max(scratch, program.scratch_chunks);
    return {{"input", schedule::blocks(shape.kind, Buffer::kInput, shape.ranks) * shape.chunks},
            {"output", schedule::blocks(shape.kind, Buffer::kOutput, shape.ranks) * shape.chunks},
            {"scratch", scratch}};
}

json sums_in(const Findings& findings) {
    json sums = json::array();
    for (const schedule::SumOrder& each : findings.sums)
        sums.push_back({{"chunks", concat(each.first, "..", each.last)}, {"order", each.order}});
    return sums;
}

/// Returns the fields that do not depend on the number of ranks.
json described(const CapsuleDescription& description, const Shape& shape) {
    json manifest{{"name", description.name},
                  {"author", description.author},
                  {"licence", description.licence},
                  {"note", description.note},
                  {"sizes", to_text(description.sizes)},
                  {"collective", schedule::to_string(shape.kind)},
                  {"root", shape.root}};
    if (description.protocol) manifest["protocol"] = schedule::file_name_of(*description.protocol);
    return manifest;
}

std::string lines_of(const json& manifest) {
    return manifest.dump(kIndent, ' ', true, json::error_handler_t::replace) + "\n";
}

/// Counts over all ranks.
struct ProgramCounts {
    std::size_t steps = 0;
    std::size_t most_lanes = 0;
    std::set<ChannelId> channels;

    explicit ProgramCounts(const Schedule& schedule) {
        for (const auto& program : schedule.programs) {
            most_lanes = std::max(most_lanes, program.lanes.size());
            for (const auto& lane : program.lanes) {
                steps += lane.size();
                for (const auto& step : lane)
                    for (const schedule::PeerPort& port : {step.from, step.to})
                        if (port.is_used()) channels.insert(port.channel);
            }
        }
    }
};

/// Reader of the keys of an object; it keeps the first error.
class Keys {
   public:
    explicit Keys(const json& object) : object_(object) {}

    std::string text(const char* key) {
        const json* value = find(key);
        if (value == nullptr) return {};
        if (value->is_string()) return value->get<std::string>();
        fail(refuse("\"", key, "\" is no text"));
        return {};
    }
    /// Returns nothing if the key is absent.
    std::vector<std::string> texts_if_any(const char* key) {
        const auto found = object_.find(key);
        if (found == object_.end()) return {};
        const bool has_texts =
            found->is_array() &&
            std::ranges::all_of(*found, [](const json& each) { return each.is_string(); });
        if (has_texts) return found->get<std::vector<std::string>>();
        fail(refuse("\"", key, "\" is no list of texts"));
        return {};
    }
    /// Returns nothing if the key is absent.
    std::optional<schedule::MessageProtocol> protocol_if_any(const char* key) {
        if (!object_.contains(key)) return std::nullopt;
        const std::string name = text(key);
        const auto protocol = schedule::message_protocol_named(name);
        if (!protocol)
            fail(refuse("\"", key, "\" is '", name.substr(0, 40), "'; there are ",
                        schedule::names_of_message_protocols()));
        return protocol;
    }
    int number(const char* key) {
        const json* value = find(key);
        if (value == nullptr) return 0;
        if (value->is_number_unsigned() && value->get<std::uint64_t>() <= 0x7FFFFFFFU)
            return value->get<int>();
        fail(refuse("\"", key, "\" is no whole number from 0 to 2147483647"));
        return 0;
    }
    [[nodiscard]] const Status& status() const { return status_; }

   private:
    const json* find(const char* key) {
        const auto found = object_.find(key);
        if (found != object_.end()) return &*found;
        fail(refuse("has no \"", key, "\""));
        return nullptr;
    }
    void fail(const Status& why) {
        if (status_.is_ok()) status_ = why;
    }

    const json& object_;
    Status status_;
};

Result<CollectiveKind> kind_of(const std::string& name) {
    if (const auto kind = schedule::collective_named(name)) return *kind;
    return refuse("\"collective\" is '", name.substr(0, 40), "'; there are ",
                  schedule::names_of_collectives());
}

}  // namespace

Status check(const CapsuleDescription& description) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
    const std::string& name = description.name;
    if (name.empty() || name.size() > kLongestName ||
        name.find_first_not_of(kLetters) != std::string::npos)
        return refuse("'", name.substr(0, kLongestName), "' is no name of a capsule: it has 1 to ",
                      kLongestName, " letters a to z, digits and _");
    PCCL_TRY(check_text("author", description.author));
    PCCL_TRY(check_text("licence", description.licence));
    return check_text("note", description.note);
}

std::string manifest_text(const CapsuleDescription& description, const Schedule& schedule,
                          const Findings& findings) {
    const Shape& shape = schedule.shape;
    const ProgramCounts counts(schedule);
    json manifest = described(description, shape);
    manifest.update({{"ranks", shape.ranks},
                     {"chunks", shape.chunks},
                     {"slots", shape.slots},
                     {"buffers", buffers_of(schedule)},
                     {"channels", counts.channels.size()},
                     {"lanes", counts.most_lanes},
                     {"steps", counts.steps},
                     {"programs", to_string(findings.symmetry)},
                     {"rounds", findings.verdict.rounds},
                     {"bit_identical", findings.verdict.bit_identical},
                     {"sums", sums_in(findings)}});
    if (!findings.links.empty()) manifest["links"] = findings.links;
    if (!schedule.phases.empty()) manifest["phases"] = schedule.phases;
    return lines_of(manifest);
}

std::string common_manifest_text(const Stated& common, const std::vector<int>& ranks) {
    json manifest = described(common.description, common.shape);
    manifest["ranks"] = ranks_text(ranks);
    return lines_of(manifest);
}

std::string first_difference(std::string_view stated, std::string_view found) {
    while (!stated.empty() || !found.empty()) {
        const std::string_view of_file = next_line(stated);
        std::string_view of_programs = next_line(found);
        if (of_file != of_programs) return std::string(next_word(of_programs));
    }
    return {};
}

Result<Stated> parse_manifest(std::string_view text) {
    const json manifest = json::parse(text, nullptr, false);
    if (!manifest.is_object()) return refuse("the manifest is no JSON object");
    Keys keys(manifest);
    Stated stated{.description = {.name = keys.text("name"),
                                  .author = keys.text("author"),
                                  .licence = keys.text("licence"),
                                  .note = keys.text("note"),
                                  .protocol = keys.protocol_if_any("protocol")},
                  .shape = {.ranks = keys.number("ranks"),
                            .root = keys.number("root"),
                            .chunks = keys.number("chunks"),
                            .slots = keys.number("slots")},
                  .phases = keys.texts_if_any("phases")};
    const std::string sizes = keys.text("sizes");
    const std::string collective = keys.text("collective");
    PCCL_TRY(keys.status());
    PCCL_ASSIGN_OR_RETURN(stated.description.sizes, parse_sizes(sizes));
    PCCL_ASSIGN_OR_RETURN(stated.shape.kind, kind_of(collective));
    PCCL_TRY(check(stated.description));
    PCCL_TRY(check_extent(stated.shape));
    return stated;
}

}  // namespace pccl::capsule
