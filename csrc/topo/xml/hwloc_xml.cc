// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/xml/hwloc_xml.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "csrc/topo/xml/machine_xml.h"
#include "csrc/topo/xml/xml_text.h"

namespace pccl::topo {
namespace {

enum class PortType : std::uint8_t { kNone, kNetwork, kRdma };

/// Returns the port type of an OS device. hwloc 2 uses a number for it, hwloc 3 a bit mask.
PortType port_of(int osdev_type, int version) {
    constexpr int kNetwork2 = 2;
    constexpr int kRdma2 = 3;
    constexpr int kNetwork3 = 1 << 4;
    constexpr int kRdma3 = 1 << 5;
    const bool is_rdma = version == 2 ? osdev_type == kRdma2 : (osdev_type & kRdma3) != 0;
    const bool is_net = version == 2 ? osdev_type == kNetwork2 : (osdev_type & kNetwork3) != 0;
    return is_rdma ? PortType::kRdma : is_net ? PortType::kNetwork : PortType::kNone;
}

/// Converts "0x0000ffff,0xffffffff" to "0000ffff,ffffffff".
std::string mask_of(std::string_view cpuset) {
    std::string mask;
    for (std::size_t i = 0; i < cpuset.size(); ++i) {
        const bool is_prefix = cpuset.substr(i, 2) == "0x";
        if (is_prefix)
            ++i;
        else
            mask += cpuset[i];
    }
    return mask;
}

class HwlocReader {
   public:
    HwlocReader(const XmlText& text, pugi::xml_node root, int version, Source source)
        : text_(text), root_(root), version_(version), source_(source) {}

    Result<Machine> read() {
        std::vector<pugi::xml_node> nodes;
        collect("NUMANode", root_, nodes);
        for (const pugi::xml_node node : nodes) add_cpu(node);
        if (machine_.cpus.empty()) machine_.cpus.emplace_back().numa = {-1, source_};
        read_model();
        has_rdma_ = has_rdma();
        PCCL_TRY(read_below(root_, "", nullptr));
        return std::move(machine_);
    }

   private:
    using Devices = std::vector<PciDevice>;

    static std::string_view type(pugi::xml_node node) { return node.attribute("type").value(); }

    [[nodiscard]] Attribute<std::string> reported(std::string value) const {
        return {std::move(value), source_};
    }

    static void collect(std::string_view wanted, pugi::xml_node node,  // NOLINT(misc-no-recursion)
                        std::vector<pugi::xml_node>& found) {
        for (const pugi::xml_node child : node.children("object")) {
            if (type(child) == wanted) found.push_back(child);
            collect(wanted, child, found);
        }
    }

    [[nodiscard]] PortType port(pugi::xml_node device) const {
        return port_of(device.attribute("osdev_type").as_int(), version_);
    }

    [[nodiscard]] bool has_rdma() const {
        std::vector<pugi::xml_node> devices;
        collect("OSDev", root_, devices);
        return std::ranges::any_of(
            devices, [&](pugi::xml_node device) { return port(device) == PortType::kRdma; });
    }

    void add_cpu(pugi::xml_node node) {
        Cpu& cpu = machine_.cpus.emplace_back();
        cpu.numa = {node.attribute("os_index").as_int(-1), source_};
        cpu.affinity = reported(mask_of(node.attribute("cpuset").value()));
        nodesets_.emplace_back(node.attribute("nodeset").value());
    }

    void read_model() {
        for (const pugi::xpath_node& found : root_.select_nodes("//info")) {
            const std::string_view name = found.node().attribute("name").value();
            const std::string value = found.node().attribute("value").value();
            for (Cpu& cpu : machine_.cpus) {
                if (name == "CPUVendor") cpu.vendor.offer(value, source_);
                if (name == "Architecture") cpu.arch.offer(value, source_);
                offer_number(name == "CPUFamilyNumber", value, cpu.family);
                offer_number(name == "CPUModelNumber", value, cpu.model);
            }
        }
    }

    void offer_number(bool is_wanted, const std::string& value, Attribute<int>& attribute) const {
        const auto number = is_wanted ? parse_number(value) : std::nullopt;
        if (number && *number >= 0 && *number < (1 << 20))
            attribute.offer(static_cast<int>(*number), source_);
    }

    /// Returns the devices of the CPU to whose node an object belongs; of the first CPU if it
    /// belongs to several.
    Devices& devices_of(std::string_view nodeset) {
        for (std::size_t i = 0; i < nodesets_.size(); ++i)
            if (nodesets_[i] == nodeset) return machine_.cpus[i].devices;
        return machine_.cpus.front().devices;
    }

    // Recursion is limited by XmlLimits::kDepth.
    Status read_below(pugi::xml_node node, std::string_view nodeset,  // NOLINT(misc-no-recursion)
                      Devices* devices) {
        for (const pugi::xml_node child : node.children("object")) {
            const std::string_view own = child.attribute("nodeset").value();
            const std::string_view set = own.empty() ? nodeset : own;
            const bool is_bridge = type(child) == "Bridge";
            const bool has_address = !child.attribute("pci_busid").empty();
            if ((is_bridge || type(child) == "PCIDev") && has_address) {
                Devices& level = devices == nullptr ? devices_of(set) : *devices;
                PCCL_TRY(read_device(child, set, level));
            } else {
                Devices* below = is_bridge ? &devices_of(set) : devices;
                PCCL_TRY(read_below(child, set, below));
            }
        }
        return Status::ok();
    }

    Status read_device(pugi::xml_node node, std::string_view nodeset,  // NOLINT(misc-no-recursion)
                       Devices& level) {
        const std::string_view address = node.attribute("pci_busid").value();
        const auto bus_id = parse_bus_id(address);
        if (!bus_id)
            return text_.refuse(node, "<object> has pci_busid=\"", shown(address),
                                "\", which must be a PCI bus id such as 0000:0d:00.0");
        PciDevice device;
        device.bus_id = reported(*bus_id);
        read_type(node.attribute("pci_type").value(), device);
        add_ports(node, device);
        PCCL_TRY(read_below(node, nodeset, &device.children));
        level.push_back(std::move(device));
        return Status::ok();
    }

    /// Parses "0302 [10de:2330] [10de:16c1] a1": class, vendor and device, those of the subsystem,
    /// revision.
    void read_type(std::string_view text, PciDevice& device) const {
        constexpr std::size_t kIds = 16;  // class, and the first bracket
        if (text.size() < kIds || text[5] != '[' || text[10] != ':') return;
        const auto id = [&](std::size_t place) {
            return reported(concat("0x", text.substr(place, 4)));
        };
        device.class_code = reported(concat("0x", text.substr(0, 4), "00"));
        device.vendor = id(6);
        device.device = id(11);
        if (text.size() < 2 * kIds - 3 || text[17] != '[') return;
        device.subsystem_vendor = id(18);
        device.subsystem_device = id(23);
    }

    void add_ports(pugi::xml_node node, PciDevice& device) const {
        const PortType wanted = has_rdma_ ? PortType::kRdma : PortType::kNetwork;
        for (const pugi::xml_node child : node.children("object")) {
            if (type(child) != "OSDev" || port(child) != wanted) continue;
            if (device.nics.empty()) device.nics.emplace_back();
            device.nics.front().nets.emplace_back().name =
                reported(child.attribute("name").value());
        }
        // Marked as a NIC, so that it is not completed with a port that does not exist.
        if (device.nics.empty() && is_nic_class(device)) device.nics.emplace_back();
    }

    const XmlText& text_;
    pugi::xml_node root_;
    const int version_;
    const Source source_;
    Machine machine_;
    std::vector<std::string> nodesets_;
    bool has_rdma_ = false;
};

}  // namespace

bool is_hwloc_xml(std::string_view text) {
    return text.find("<topology") != std::string_view::npos;
}

Result<Machine> parse_hwloc_xml(std::string_view text, std::string_view name, Source source) {
    XmlText xml(text, name);
    PCCL_ASSIGN_OR_RETURN(const pugi::xml_node root, xml.load());
    if (std::string_view(root.name()) != "topology")
        return xml.refuse(root, "the root is <", shown(root.name()),
                          ">; hwloc's XML begins with <topology>");
    const pugi::xml_attribute version = root.attribute("version");
    if (!version)
        return Status::unsupported(
            concat(xml.place(root),
                   ": <topology> has no version, as hwloc 1 wrote it; versions 2 and 3 are read: "
                   "lstopo of hwloc 2 converts it (lstopo --input old.xml new.xml)"));
    const std::string_view number = version.value();
    for (const int known : {2, 3})
        if (number.starts_with(concat(known, ".")))
            return HwlocReader(xml, root, known, source).read();
    return Status::unsupported(
        concat(xml.place(root), ": <topology> has version=\"", shown(number),
               "\"; versions 2 and 3 are read: lstopo --export-xml-flags v2 writes the former"));
}

}  // namespace pccl::topo
