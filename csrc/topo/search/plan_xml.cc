// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/search/plan_xml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/topo/search/search.h"
#include "csrc/topo/xml/xml_text.h"

namespace pccl::topo {
namespace {

constexpr int kHostShift = 56;

struct GraphKind {
    Pattern pattern;
    int id;            // of the <graph>
    int nccl_pattern;  // the pattern that PCCL writes; it reads any pattern
};
constexpr std::array<GraphKind, 3> kKinds{
    {{Pattern::kRing, 0, 4}, {Pattern::kTree, 1, 3}, {Pattern::kHeads, 3, 5}}};

/// Returns NCCL's number of a device, with the host in the top byte.
std::string device_id(const Node& node) {
    const std::uint64_t id = (static_cast<std::uint64_t>(node.host) << kHostShift) |
                             static_cast<std::uint64_t>(node.dev);
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), id, 16).ptr;
    return concat("0x", std::string_view(digits.data(), end));
}

class PlanWriter {
   public:
    PlanWriter(const Topology& topology, pugi::xml_node root)
        : graph_(topology.graph()), root_(root) {}

    void write(const ChannelPlan& plan) {
        const GraphKind kind =
            *std::find_if(kKinds.begin(), kKinds.end(),
                          [&](const GraphKind& known) { return known.pattern == plan.pattern; });
        pugi::xml_node node = root_.append_child("graph");
        set(node, "id", kind.id);
        set(node, "pattern", kind.nccl_pattern);
        set(node, "crossnic", crosses(plan) ? 2 : 0);
        set(node, "nchannels", plan.channels.size());
        set(node, "speedintra", lowest(plan));
        set(node, "speedinter", lowest(plan));
        set(node, "latencyinter", 0);
        set(node, "typeintra", to_string(plan.type_intra));
        set(node, "typeinter", to_string(plan.type_inter));
        set(node, "samechannels", are_same(plan) ? 1 : 0);
        set(node, "nodes", plan.nodes);
        for (const Channel& channel : plan.channels) write(node, plan, channel);
    }

   private:
    template <typename Value>
    static void set(pugi::xml_node node, const char* name, const Value& value) {
        node.append_attribute(name).set_value(concat(value).c_str());
    }

    static bool crosses(const ChannelPlan& plan) {
        return std::any_of(plan.channels.begin(), plan.channels.end(), [](const Channel& channel) {
            return channel.net_in != channel.net_out;
        });
    }
    static bool are_same(const ChannelPlan& plan) {
        return std::all_of(plan.channels.begin(), plan.channels.end(), [&](const Channel& channel) {
            return channel == plan.channels.front();
        });
    }
    static double lowest(const ChannelPlan& plan) {
        double lowest = std::numeric_limits<double>::infinity();
        for (const Channel& channel : plan.channels) lowest = std::min(lowest, channel.bandwidth);
        return plan.channels.empty() ? 0 : lowest;
    }

    void write(pugi::xml_node parent, const ChannelPlan& plan, const Channel& channel) {
        const pugi::xml_node node = parent.append_child("channel");
        set(node, "bandwidth", channel.bandwidth);
        write_net(node, channel.net_in);
        const bool is_head = plan.pattern == Pattern::kHeads;
        const std::size_t count = is_head ? 1 : channel.order.size();
        for (std::size_t i = 0; i < count; ++i) write_gpu(node, channel.order[i]);
        write_net(node, channel.net_out);
    }

    void write_net(pugi::xml_node parent, int net) {
        if (net == kNoNet) return;
        set(parent.append_child("net"), "dev", device_id(graph_.node(graph_.nets()[at(net)])));
    }

    void write_gpu(pugi::xml_node parent, int gpu) {
        const Node& device = graph_.node(graph_.gpus()[at(gpu)]);
        const pugi::xml_node node = parent.append_child("gpu");
        set(node, "dev", device_id(device));
        if (device.rank >= 0) set(node, "rank", device.rank);
    }

    const Graph& graph_;
    pugi::xml_node root_;
};

class PlanReader {
   public:
    PlanReader(const XmlText& text, const Graph& graph) : text_(text), graph_(graph) {}

    Result<std::vector<ChannelPlan>> read(pugi::xml_node root) {
        const std::string_view version = root.attribute("version").value();
        if (std::string_view(root.name()) != "graphs" || version != "1")
            return text_.refuse(root, "no <graphs version=\"1\">, which NCCL's graphs begin with");
        std::vector<ChannelPlan> plans;
        for (const pugi::xml_node node : root.children("graph")) {
            PCCL_ASSIGN_OR_RETURN(const std::int64_t id, number(node, "id", 0, kMost));
            const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                           [id](const GraphKind& known) { return known.id == id; });
            PCCL_ASSIGN_OR_RETURN(const std::int64_t count,
                                  number(node, "nchannels", 0, SearchOptions::kMostChannels));
            if (kind != kKinds.end() && count > 0)
                PCCL_TRY(read(node, kind->pattern, plans.emplace_back()));
        }
        return plans;
    }

   private:
    static constexpr std::int64_t kMost = 1 << 20;

    Result<std::int64_t> number(pugi::xml_node node, const char* name, std::int64_t low,
                                std::int64_t high) const {
        const std::string_view value = node.attribute(name).value();
        const auto parsed = parse_number(value);
        if (parsed && *parsed >= low && *parsed <= high) return *parsed;
        return text_.refuse(node, "<", node.name(), "> has ", name, "=\"", shown(value),
                            "\", which must be a whole number from ", low, " to ", high);
    }

    Result<double> bandwidth(pugi::xml_node node, const char* name) const {
        constexpr double kHighest = 1e6;
        const std::string_view value = node.attribute(name).value();
        double parsed = 0;
        const auto [stop, error] =
            std::from_chars(value.data(), value.data() + value.size(), parsed);
        const bool is_number = error == std::errc{} && stop == value.data() + value.size();
        if (is_number && parsed > 0 && parsed <= kHighest) return parsed;
        return text_.refuse(node, "<", node.name(), "> has ", name, "=\"", shown(value),
                            "\", which must be GB/s above 0");
    }

    Result<PathType> type(pugi::xml_node node, const char* name) const {
        const std::string_view value = node.attribute(name).value();
        if (const auto type = path_type_named(value)) return *type;
        return text_.refuse(node, "<graph> has ", name, "=\"", shown(value),
                            "\", which must be a type of path such as NVL, PIX or SYS");
    }

    Status read(pugi::xml_node node, Pattern pattern, ChannelPlan& plan) {
        plan.pattern = pattern;
        plan.bound = std::numeric_limits<double>::infinity();
        PCCL_ASSIGN_OR_RETURN(plan.type_intra, type(node, "typeintra"));
        PCCL_ASSIGN_OR_RETURN(plan.type_inter, type(node, "typeinter"));
        PCCL_ASSIGN_OR_RETURN(const double speed, bandwidth(node, "speedintra"));
        PCCL_ASSIGN_OR_RETURN(const std::int64_t count,
                              number(node, "nchannels", 1, SearchOptions::kMostChannels));
        for (const pugi::xml_node child : node.children("channel"))
            PCCL_TRY(read(child, pattern, plan.channels.emplace_back(Channel{speed})));
        if (std::cmp_not_equal(plan.channels.size(), count))
            return text_.refuse(node, "<graph> has ", plan.channels.size(),
                                " channels, and nchannels=\"", count, "\"; they must be equal");
        for (const Channel& channel : plan.channels) plan.bandwidth += channel.bandwidth;
        return read_nodes(node, plan);
    }

    Status read_nodes(pugi::xml_node node, ChannelPlan& plan) const {
        const auto with_nets =
            std::count_if(plan.channels.begin(), plan.channels.end(),
                          [](const Channel& channel) { return channel.net_in != kNoNet; });
        if (with_nets != 0 && with_nets != std::ssize(plan.channels))
            return text_.refuse(node, "some channels have a <net>, and some have none");
        plan.nodes = with_nets > 0 ? 2 : 1;
        if (!node.attribute("nodes")) return Status::ok();
        PCCL_ASSIGN_OR_RETURN(const std::int64_t nodes,
                              number(node, "nodes", plan.nodes, plan.nodes > 1 ? kMost : 1));
        plan.nodes = static_cast<int>(nodes);
        return Status::ok();
    }

    Status read(pugi::xml_node node, Pattern pattern, Channel& channel) {
        if (node.attribute("bandwidth")) {
            PCCL_ASSIGN_OR_RETURN(channel.bandwidth, bandwidth(node, "bandwidth"));
        }
        std::vector<int> nets;
        for (const pugi::xml_node child : node.children()) {
            const bool is_net = std::string_view(child.name()) == "net";
            const std::vector<int>& devices = is_net ? graph_.nets() : graph_.gpus();
            // A port may occur again; among GPUs with one number, each occurs once.
            const std::span<const int> met =
                is_net ? std::span<const int>() : std::span<const int>(channel.order);
            PCCL_ASSIGN_OR_RETURN(const int device, find(child, devices, met));
            (is_net ? nets : channel.order).push_back(device);
        }
        if (!nets.empty()) channel.net_in = nets.front();
        if (!nets.empty()) channel.net_out = nets.back();
        if (pattern == Pattern::kHeads) add_others(channel);
        std::vector<int> sorted = channel.order;
        std::sort(sorted.begin(), sorted.end());
        const bool is_once = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
        if (is_once && sorted.size() == graph_.gpus().size() && nets.size() <= 2)
            return Status::ok();
        return text_.refuse(node, "<channel> must have each of the ", graph_.gpus().size(),
                            " GPUs once, and at most two <net>");
    }

    /// Adds the other GPUs of a channel that lists only its head.
    void add_others(Channel& channel) const {
        if (channel.order.size() != 1) return;
        for (int gpu = 0; std::cmp_less(gpu, graph_.gpus().size()); ++gpu)
            if (gpu != channel.order.front()) channel.order.push_back(gpu);
    }

    Result<int> find(pugi::xml_node node, const std::vector<int>& devices,
                     std::span<const int> met) const {
        const std::string_view value = node.attribute("dev").value();
        const auto id = parse_number(value);
        int found = -1;
        for (int i = 0; id && std::cmp_less(i, devices.size()); ++i) {
            const Node& device = graph_.node(devices[at(i)]);
            const bool is_named = (*id >> kHostShift) == device.host &&
                                  (*id & ((std::int64_t{1} << kHostShift) - 1)) == device.dev;
            if (!is_named) continue;
            found = i;
            if (std::find(met.begin(), met.end(), i) == met.end()) return i;
        }
        if (found >= 0) return found;
        return text_.refuse(node, "<", shown(node.name()), "> has dev=\"", shown(value),
                            "\", which the machine has not");
    }

    const XmlText& text_;
    const Graph& graph_;
};

}  // namespace

std::string plan_xml(const std::vector<ChannelPlan>& plans, const Topology& topology) {
    pugi::xml_document document;
    pugi::xml_node root = document.append_child("graphs");
    root.append_attribute("version").set_value(1);
    PlanWriter writer(topology, root);
    for (const ChannelPlan& plan : plans) writer.write(plan);
    return to_text(document);
}

Result<std::vector<ChannelPlan>> parse_plan_xml(std::string_view text, std::string_view name,
                                                const Topology& topology) {
    XmlText xml(text, name);
    PCCL_ASSIGN_OR_RETURN(const pugi::xml_node root, xml.load());
    return PlanReader(xml, topology.graph()).read(root);
}

}  // namespace pccl::topo
