// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/file/cluster_file.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <pccl/phases.h>
#include "csrc/base/text/nearest.h"
#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"
#include "csrc/cluster/drivers/dialects.h"
#include "csrc/cluster/file/json_fields.h"
#include "csrc/cluster/model/name.h"
#include "csrc/cluster/model/vlans.h"
#include "csrc/sys/ssh/ssh_channel.h"

namespace pccl::cluster {
namespace {

constexpr int kMostDepth = 8;
constexpr long kMostPorts = 65535;
constexpr long kMostRanks = 16384;
constexpr std::string_view kFabric = "fabric";

/// Parses with nlohmann's parser, with bounded depth.
std::optional<Json> parse_json(std::string_view text) {
    bool is_too_deep = false;
    const auto watch = [&](int depth, Json::parse_event_t /*event*/, Json& /*value*/) {
        is_too_deep = is_too_deep || depth > kMostDepth;
        return !is_too_deep;
    };
    Json json = Json::parse(text, watch, false);
    if (json.is_discarded() || is_too_deep) return std::nullopt;
    return json;
}

/// Parses "netconf://user@host:port" or "netconf://user@[fe80::1]:port"; the port is optional.
std::optional<Management> parse_address(std::string_view text) {
    constexpr std::string_view kScheme = "netconf://";
    if (!text.starts_with(kScheme)) return std::nullopt;
    text.remove_prefix(kScheme.size());
    const std::size_t at = text.find('@');
    if (at == std::string_view::npos || !is_name(text.substr(0, at))) return std::nullopt;
    Management management;
    management.user = text.substr(0, at);
    text.remove_prefix(at + 1);
    const std::size_t bracket = text.starts_with('[') ? text.find(']') : std::string_view::npos;
    const std::size_t host_end =
        bracket == std::string_view::npos ? text.find(':') : text.find(':', bracket);
    std::string_view host = text.substr(0, host_end);
    if (bracket != std::string_view::npos) host = host.substr(1, bracket - 1);
    if (host.empty() || host.size() > 255) return std::nullopt;
    management.host = host;
    if (host_end == std::string_view::npos) return management;
    const auto port = number_in<std::uint16_t>(text.substr(host_end + 1), 1, UINT16_MAX);
    if (!port) return std::nullopt;
    management.port = *port;
    return management;
}

std::string item(std::string_view place, std::string_view list, std::size_t index) {
    return concat(place, place.ends_with(':') ? " " : ".", list, "[", index, "]");
}

class FileReader {
   public:
    explicit FileReader(std::string_view name) : top_(concat(name, ":")) {}

    Result<Description> read(const Json& json) {
        JsonFields fields(json, top_);
        fields.text("audit", description_.audit_file);
        const Json& switches = fields.list("switches");
        const Json& devices = fields.list("devices");
        const Json* const phases = fields.member("phases");
        PCCL_TRY(fields.finish());
        PCCL_TRY(read_switches(switches));
        PCCL_TRY(read_devices(devices));
        if (phases != nullptr) PCCL_TRY(read_phases(*phases));
        return std::move(description_);
    }

   private:
    Status read_switches(const Json& list) {
        for (std::size_t i = 0; i < list.size(); ++i) {
            PCCL_ASSIGN_OR_RETURN(SwitchDescription read,
                                  read_switch(list[i], item(top_, "switches", i)));
            for (const SwitchDescription& other : description_.switches)
                if (other.name == read.name)
                    return refused(item(top_, "switches", i), "has the name of another switch");
            description_.switches.push_back(std::move(read));
        }
        has_implied_switch_ = list.empty();
        if (has_implied_switch_)
            description_.switches.push_back({.name = std::string(kFabric), .management = {}});
        return Status::ok();
    }

    static Result<SwitchDescription> read_switch(const Json& json, const std::string& place) {
        SwitchDescription read;
        std::string kind;
        std::string address;
        long settle = 0;
        long confirm = read.confirm_timeout.count();
        JsonFields fields(json, place);
        fields.name("name", read.name);
        fields.text("kind", kind);
        if (kind == "electrical") read.dialect = "pccl-vlan";
        fields.text("dialect", read.dialect);
        fields.text("address", address);
        fields.number("settle_ms", settle, {0, 600'000});
        fields.number("confirm_timeout_s", confirm, {1, 3600});
        fields.flag("copy_to_startup", read.copies_to_startup);
        read_kind(fields, kind, read);
        if (settle >= confirm * 1000)
            fields.refuse("settle_ms",
                          "must be less than the confirm timeout (confirm_timeout_s), "
                          "or the switch takes back what it has not settled");
        read.is_in_process = address.empty();
        read.settle = std::chrono::milliseconds(settle);
        read.confirm_timeout = std::chrono::seconds(confirm);
        read_management(fields, address, read.management);
        PCCL_TRY(fields.finish());
        return read;
    }

    /// Sets the kind by the dialect; the file's own kind must agree.
    static void read_kind(JsonFields& fields, const std::string& kind, SwitchDescription& read) {
        if (!kind.empty() && kind != "optical" && kind != "electrical")
            return fields.refuse("kind", "must be optical or electrical");
        const Dialect* const dialect = find_dialect(read.dialect);
        const bool electrical = kind == "electrical";
        if (dialect == nullptr || (!kind.empty() && dialect->is_electrical() != electrical))
            return fields.refuse("dialect", concat("must be one of ", dialect_names(electrical),
                                                   kind.empty() ? concat(", ", dialect_names(true))
                                                                : std::string()));
        read.kind = dialect->kind;
    }

    static void read_management(JsonFields& fields, const std::string& address,
                                Management& management) {
        if (!address.empty()) {
            const auto parsed = parse_address(address);
            if (!parsed) return fields.refuse("address", "must be netconf://user@host:port");
            management = *parsed;
        }
        fields.text("host_key", management.host_key);
        fields.text("key_file", management.key_file);
        fields.flag("accept_any_host_key", management.accepts_any_host_key);
        if (address.empty()) return;
        if (management.key_file.empty())
            fields.refuse("key_file", "must name the private key for the address");
        if (!management.accepts_any_host_key && !sys::is_fingerprint(management.host_key))
            fields.refuse("host_key",
                          "must be SHA256: and 43 characters, as ssh-keygen -l prints it, or "
                          "accept_any_host_key be true (in a laboratory)");
    }

    Status read_devices(const Json& list) {
        if (list.empty())
            return refused(concat(top_, " devices"), "must list the ranks' devices: it has none");
        for (std::size_t i = 0; i < list.size(); ++i) {
            PCCL_ASSIGN_OR_RETURN(
                Device read, read_device(list[i], item(top_, "devices", i), static_cast<long>(i)));
            description_.devices.push_back(std::move(read));
        }
        std::sort(description_.devices.begin(), description_.devices.end(),
                  [](const Device& a, const Device& b) { return a.rank < b.rank; });
        for (std::size_t i = 0; i < description_.devices.size(); ++i)
            if (description_.devices[i].rank != static_cast<Rank>(i))
                return refused(concat(top_, " devices"),
                               concat("must have each rank from 0 on once; ", i, " is missing"));
        return Status::ok();
    }

    Result<Device> read_device(const Json& json, const std::string& place, long index) {
        Device read{.name = concat("node", index)};
        long rank = index;
        JsonFields fields(json, place);
        fields.name("name", read.name);
        fields.number("rank", rank, {0, kMostRanks - 1});
        read.rank = static_cast<Rank>(rank);
        const Json* const ports = fields.member("ports");
        PCCL_TRY(fields.finish());
        if (ports != nullptr)
            PCCL_TRY(read_ports(*ports, concat(place, ".ports"), read));
        else if (has_implied_switch_)
            read.ports = implied_ports(rank);
        return read;
    }

    static std::vector<Port> implied_ports(long rank) {
        const int first = static_cast<int>(2 * rank) + 1;
        return {{std::string(kFabric), first}, {std::string(kFabric), first + 1}};
    }

    Status read_ports(const Json& json, const std::string& place, Device& device) {
        if (!json.is_object()) return refused(place, "must be a mapping of switches to ports");
        for (const auto& [name, value] : json.items()) {
            PCCL_ASSIGN_OR_RETURN(const std::string of_switch, switch_called(name, place));
            const Json list = value.is_array() ? value : Json::array({value});
            for (const Json& each : list)
                PCCL_TRY(add_port(each, concat(place, ".", of_switch), of_switch, device));
        }
        return Status::ok();
    }

    Status add_port(const Json& json, const std::string& place, const std::string& of_switch,
                    Device& device) {
        long number = 0;
        const Json wrapped = {{"port", json}};
        JsonFields fields(wrapped, place);
        SwitchDescription& of = find_switch(of_switch);
        fields.number("port", number,
                      {1, of.kind == SwitchKind::kVlans ? kMostVlanPorts : kMostPorts});
        PCCL_TRY(fields.finish());
        if (!taken_ports_.insert({of_switch, number}).second)
            return refused(place, concat("port ", number, " is another device's already"));
        device.ports.push_back({of_switch, static_cast<int>(number)});
        if (of.kind != SwitchKind::kOptical) of.ports.push_back(static_cast<int>(number));
        return Status::ok();
    }

    SwitchDescription& find_switch(const std::string& name) {
        return *std::ranges::find(description_.switches, name, &SwitchDescription::name);
    }

    /// Returns the switch by its name, or by its kind if there is only one.
    [[nodiscard]] Result<std::string> switch_called(const std::string& name,
                                                    const std::string& place) const {
        const auto& switches = description_.switches;
        std::vector<std::string_view> names;
        for (const SwitchDescription& each : switches) {
            if (each.name == name) return each.name;
            names.emplace_back(each.name);
        }
        if (const SwitchDescription* const only = only_of_kind(name)) return only->name;
        const std::string meant = did_you_mean(name, names);
        return refused(
            place, concat("names a switch that does not exist", meant.empty() ? "" : "; ", meant));
    }

    /// Returns the switch of kind "optical" or "electrical", if there is exactly one.
    [[nodiscard]] const SwitchDescription* only_of_kind(std::string_view kind) const {
        if (kind != "optical" && kind != "electrical") return nullptr;
        const SwitchDescription* found = nullptr;
        for (const SwitchDescription& each : description_.switches) {
            if ((each.kind == SwitchKind::kOptical) != (kind == "optical")) continue;
            if (found != nullptr) return nullptr;
            found = &each;
        }
        return found;
    }

    Status read_phases(const Json& json) {
        const std::string place = concat(top_, " phases");
        if (!json.is_object() || json.size() > JsonFields::kMostItems)
            return refused(place, "must be a mapping of names to phases");
        for (const auto& [name, value] : json.items()) {
            if (!is_name(name)) return refused(place, concat("must have names: ", kNameRule));
            PCCL_ASSIGN_OR_RETURN(Phase phase, read_phase(value, concat(place, ".", name)));
            phase.name = name;
            links_ += phase.links.size();
            if (links_ > kMostLinks)
                return refused(place, concat("have more than ", kMostLinks, " links in all"));
            const auto circuits = circuits_of(description_, phase);
            if (!circuits.is_ok())
                return circuits.status().with_context(top_.substr(0, top_.size() - 1));
            description_.phases.push_back(std::move(phase));
        }
        return Status::ok();
    }

    Result<Phase> read_phase(const Json& json, const std::string& place) {
        Phase phase;
        bool duplex = false;
        JsonFields fields(json, place);
        fields.flag("duplex", duplex);
        fields.flag("forward", phase.forwards);
        const Json* const links = fields.member("links");
        PCCL_TRY(fields.finish());
        if (links == nullptr)
            return refused(concat(place, ".links"), "must be ring, or a list of pairs of ranks");
        PCCL_ASSIGN_OR_RETURN(const auto one_way, read_links(*links, concat(place, ".links")));
        phase.links = duplex ? both_ways(one_way) : one_way;
        return phase;
    }

    [[nodiscard]] Result<std::vector<RankLink>> read_links(const Json& json,
                                                           const std::string& place) const {
        const auto ranks = static_cast<long>(description_.devices.size());
        if (json == "ring") return ring_of(static_cast<int>(ranks));
        if (!json.is_array() || json.size() > JsonFields::kMostItems)
            return refused(place, "must be ring, or a list of pairs of ranks");
        std::vector<RankLink> links;
        for (std::size_t i = 0; i < json.size(); ++i) {
            const auto link = read_link(json[i], ranks);
            if (!link)
                return refused(concat(place, "[", i, "]"),
                               concat("must be two different ranks from 0 to ", ranks - 1));
            links.push_back(*link);
        }
        return links;
    }

    static std::optional<RankLink> read_link(const Json& json, long ranks) {
        if (!json.is_array() || json.size() != 2) return std::nullopt;
        for (const Json& each : json)
            if (!each.is_number_unsigned() ||
                each.get<std::uint64_t>() >= static_cast<std::uint64_t>(ranks))
                return std::nullopt;
        const RankLink link{json[0].get<Rank>(), json[1].get<Rank>()};
        if (link.from == link.to) return std::nullopt;
        return link;
    }

    const std::string top_;
    Description description_;
    std::set<std::pair<std::string, long>> taken_ports_;
    std::size_t links_ = 0;  // of all phases
    bool has_implied_switch_ = false;
};

}  // namespace

Result<Description> parse_cluster_file(std::string_view text, std::string_view name) {
    if (text.size() > kLongestClusterFile)
        return Status::invalid_argument(
            concat(name, ": is longer than ", kLongestClusterFile, " bytes"));
    const auto json = parse_json(text);
    if (!json)
        return Status::invalid_argument(
            concat(name, ": is no JSON, or nested deeper than ", kMostDepth));
    return FileReader(name).read(*json);
}

}  // namespace pccl::cluster
