// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/graph/graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/topo/machine/rates.h"

namespace pccl::topo {
namespace {

/// Returns whether the two are levels of one Broadcom switch that appear as separate bridges.
bool is_part_of(const PciDevice& child, const PciDevice& parent) {
    const std::string device = child.device.value_or("");
    return child.vendor.value_or("") == "0x1000" && (device == "0xc010" || device == "0xc030") &&
           child.vendor == parent.vendor && child.device == parent.device;
}

std::string rail_of(const Net& net) {
    for (const auto& [name, value] : net.extras)
        if (name == "rail") return value;
    return concat(net.guid.value_or("0x0"), "/", net.port.value_or(0));
}

}  // namespace

class GraphBuilder {
   public:
    explicit GraphBuilder(const GraphOptions& options) : options_(options) {}

    Result<Graph> build(const Machine& machine) {
        for (const Cpu& cpu : machine.cpus) add_cpu(cpu);
        join_sockets(machine);
        for (const PlacedDevice& device : devices_) add_nvlinks(device);
        join_meshes();
        number_nodes();
        graph_.hosts_ = static_cast<int>(hosts_.size());
        if (std::max(graph_.gpus_.size(), graph_.nets_.size()) > Graph::kMost)
            return Status::invalid_argument(
                concat("more than ", Graph::kMost, " GPUs or NICs in one machine"));
        if (!fault_.is_ok()) return fault_;
        return std::move(graph_);
    }

   private:
    struct PlacedDevice {
        const PciDevice* pci;
        int node;
        int cpu;
    };
    using BusId = std::pair<int, std::string>;  // host, bus id

    int add_node(Node node) {
        graph_.nodes_.push_back(std::move(node));
        graph_.adjacent_.emplace_back();
        return static_cast<int>(graph_.nodes_.size()) - 1;
    }

    void connect(int a, int b, LinkType type, double bandwidth) {
        const int id = static_cast<int>(graph_.links_.size());
        graph_.links_.push_back({.from = a, .to = b, .type = type, .bandwidth = bandwidth});
        graph_.links_.push_back({.from = b, .to = a, .type = type, .bandwidth = bandwidth});
        adjacent(a).push_back(id);
        adjacent(b).push_back(id + 1);
    }
    std::vector<int>& adjacent(int node) {
        return graph_.adjacent_[static_cast<std::size_t>(node)];
    }

    void add_cpu(const Cpu& cpu) {
        const std::string host = cpu.host.value_or("");
        host_ = hosts_.try_emplace(host, static_cast<int>(hosts_.size())).first->second;
        const int numa = cpu.numa.value_or(-1);
        cpu_ = add_node({.type = NodeType::kCpu,
                         .host = host_,
                         .label = numa < 0 ? "NUMA unknown" : concat("NUMA ", numa),
                         .dev = numa,
                         .intel = cpu.vendor.value_or("") == "GenuineIntel"});
        sockets_.push_back(cpu_);
        for (const PciDevice& device : cpu.devices)
            if (leads_somewhere(device)) add_device(cpu_, device);
        add_nics(cpu_, cpu.nics, kLocalRate);
    }

    void add_device(int parent, const PciDevice& device) {  // NOLINT(misc-no-recursion)
        const std::string bus_id = device.bus_id.value_or("");
        const bool is_gpu = device.gpus.size() == 1;
        int node = -1;
        if (is_gpu) {
            node = add_gpu(device.gpus.front(), bus_id);
            connect(node, parent, LinkType::kPci, pci_rate(device));
        } else if (device.gpus.size() > 1 || !device.children.empty()) {
            node = add_node({.type = NodeType::kPci, .host = host_, .label = bus_id});
            connect(node, parent, LinkType::kPci, pci_rate(device));
        }
        if (!device.gpus.empty()) remember(device, node);
        for (const Gpu& gpu : device.gpus)
            if (!is_gpu) connect(add_gpu(gpu, bus_id), node, LinkType::kLocal, kLocalRate);
        const bool is_switch = !is_gpu && node >= 0;
        add_nics(is_switch ? node : parent, device.nics, pci_rate(device));
        add_children(is_switch ? node : parent, device);
    }

    void add_children(int node, const PciDevice& device) {  // NOLINT(misc-no-recursion)
        for (const PciDevice& child : device.children) {
            if (!leads_somewhere(child)) continue;
            if (is_part_of(child, device))
                add_children(node, child);
            else
                add_device(node, child);
        }
    }

    int add_gpu(const Gpu& gpu, const std::string& bus_id) {
        const int node = add_node({.type = NodeType::kGpu,
                                   .host = host_,
                                   .label = bus_id,
                                   .sm = gpu.sm.value_or(0),
                                   .dev = gpu.dev.value_or(0),
                                   .rank = gpu.rank.value_or(-1),
                                   .gdr = gpu.gdr.value_or(1) != 0});
        if (gpu.c2c) connect(node, cpu_, LinkType::kC2c, c2c_rate(*gpu.c2c));
        graph_.gpus_.push_back(node);
        return node;
    }

    void add_nics(int parent, const std::vector<Nic>& nics, double rate) {
        for (const Nic& nic : nics) {
            if (nic.nets.empty()) continue;
            const int card = add_node({.type = NodeType::kNic, .host = host_});
            connect(card, parent, LinkType::kPci, rate);
            for (const Net& net : nic.nets) add_net(card, net);
        }
    }

    void add_net(int card, const Net& net) {
        const int node = add_node({.type = NodeType::kNet,
                                   .host = host_,
                                   .label = net.name.value_or(""),
                                   .dev = net.dev.value_or(0),
                                   .gdr = net.gdr.value_or(1) != 0,
                                   .usable = net.usable,
                                   .rail = rail_of(net)});
        connect(node, card, LinkType::kNet, net_rate(net));
        graph_.nets_.push_back(node);
    }

    void remember(const PciDevice& device, int node) {
        const std::string bus_id = device.bus_id.value_or("");
        if (!by_bus_id_.emplace(BusId(host_, bus_id), node).second && fault_.is_ok())
            fault_ = Status::invalid_argument(
                concat("two GPUs have the bus id ", bus_id, "; on one host each needs its own"));
        devices_.push_back({&device, node, cpu_});
    }

    void join_sockets(const Machine& machine) {
        for (std::size_t i = 0; i < sockets_.size(); ++i)
            for (std::size_t j = i + 1; j < sockets_.size(); ++j)
                if (graph_.node(sockets_[i]).host == graph_.node(sockets_[j]).host)
                    connect(sockets_[i], sockets_[j], LinkType::kSys,
                            std::min(socket_rate(machine.cpus[i]), socket_rate(machine.cpus[j])));
    }

    int nvswitch_of(int host) {
        const int fabric = options_.multi_node_nvlink ? 0 : host;
        const auto [found, is_new] = fabrics_.try_emplace(fabric, -1);
        if (is_new) found->second = add_node({.type = NodeType::kNvSwitch, .host = fabric});
        return found->second;
    }

    void add_nvlinks(const PlacedDevice& device) {
        const int host = graph_.node(device.node).host;
        double to_switch = 0;
        double to_cpu = 0;
        const Gpu& gpu = device.pci->gpus.front();
        for (const NvLink& link : gpu.nvlinks) {
            const double rate = nvlink_rate(gpu.sm.value_or(0)) * link.count.value_or(0);
            const auto peer = by_bus_id_.find({host, link.target.value_or("")});
            if (link.target_class.value_or("") == kPowerCpuClass)
                to_cpu += rate;
            else if (peer == by_bus_id_.end())
                to_switch += rate;
            else if (peer->second != device.node)
                mesh_[{device.node, peer->second}] += rate;
        }
        if (to_switch > 0) connect(device.node, nvswitch_of(host), LinkType::kNvLink, to_switch);
        if (to_cpu > 0) connect(device.node, device.cpu, LinkType::kNvLink, to_cpu);
    }

    /// Ignores links that only one end lists.
    void join_meshes() {
        for (const auto& [ends, rate] : mesh_) {
            const auto back = mesh_.find({ends.second, ends.first});
            const double other = back == mesh_.end() ? 0 : back->second;
            if (ends.first < ends.second && std::min(rate, other) > 0)
                connect(ends.first, ends.second, LinkType::kNvLink, std::min(rate, other));
        }
    }

    void number_nodes() {
        const auto by_device = [this](int a, int b) {
            const Node& left = graph_.node(a);
            const Node& right = graph_.node(b);
            return std::pair(left.host, left.dev) < std::pair(right.host, right.dev);
        };
        std::stable_sort(graph_.gpus_.begin(), graph_.gpus_.end(), by_device);
        std::stable_sort(graph_.nets_.begin(), graph_.nets_.end(), by_device);
        for (int id = 0; std::cmp_less(id, graph_.nodes_.size()); ++id) {
            if (graph_.node(id).type == NodeType::kCpu) graph_.cpus_.push_back(id);
            if (graph_.node(id).type == NodeType::kNvSwitch) graph_.switches_.push_back(id);
        }
        number(graph_.gpus_);
        number(graph_.nets_);
        number(graph_.cpus_);
        number(graph_.switches_);
        number(of_type(NodeType::kPci));
        number(of_type(NodeType::kNic));
    }

    std::vector<int> of_type(NodeType type) const {
        std::vector<int> found;
        for (int id = 0; std::cmp_less(id, graph_.nodes_.size()); ++id)
            if (graph_.node(id).type == type) found.push_back(id);
        return found;
    }

    void number(const std::vector<int>& ids) {
        for (std::size_t i = 0; i < ids.size(); ++i) {
            Node& node = graph_.nodes_[static_cast<std::size_t>(ids[i])];
            node.index = static_cast<int>(i);
            node.name = concat(to_string(node.type), i);
        }
    }

    GraphOptions options_;
    Graph graph_;
    Status fault_;
    int host_ = 0;
    int cpu_ = 0;
    std::map<std::string, int> hosts_;
    std::vector<int> sockets_;
    std::vector<PlacedDevice> devices_;
    std::map<BusId, int> by_bus_id_;
    std::map<int, int> fabrics_;
    std::map<std::pair<int, int>, double> mesh_;
};

Result<Graph> Graph::build(const Machine& machine, const GraphOptions& options) {
    return GraphBuilder(options).build(machine);
}

Graph Graph::with(const RateOf& rate_of) const {
    Graph graph = *this;
    for (Link& link : graph.links_)
        if (const auto rate = rate_of(link)) {
            link.bandwidth = *rate;
            link.is_measured = true;
        }
    return graph;
}

int Graph::find(std::string_view name) const {
    int found = -1;
    for (int id = 0; std::cmp_less(id, nodes_.size()); ++id) {
        if (node(id).name == name) return id;
        if (node(id).label == name) found = found < 0 ? id : -2;
    }
    return std::max(found, -1);
}

}  // namespace pccl::topo
