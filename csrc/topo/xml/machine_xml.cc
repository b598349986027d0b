// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/xml/machine_xml.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "csrc/topo/machine/machine_fields.h"
#include "csrc/topo/xml/xml_text.h"

namespace pccl::topo {
namespace {

/// Reader of the attributes of one element into members; it keeps the first error.
class FieldReader {
   public:
    FieldReader(const XmlText& text, pugi::xml_node node, Source source)
        : text_(text), node_(node), source_(source) {}

    void number(const char* name, Attribute<int>& into, int low, int high) {
        const std::string_view value = take(name);
        if (value.empty()) return;
        const auto parsed = parse_number(value);
        if (!parsed || *parsed < low || *parsed > high)
            return refuse(name, value, concat("must be a whole number from ", low, " to ", high));
        into = {static_cast<int>(*parsed), source_};
    }

    void text(const char* name, Attribute<std::string>& into) {
        const std::string_view value = take(name);
        if (!value.empty() || node_.attribute(name)) into = {std::string(value), source_};
    }

    void bus_id(const char* name, Attribute<std::string>& into) {
        const std::string_view value = take(name);
        if (value.empty()) return;
        auto parsed = parse_bus_id(value);
        if (!parsed) return refuse(name, value, "must be a PCI bus id such as 0000:0d:00.0");
        into = {*std::move(parsed), source_};
    }

    void extras(Extras& into) {
        for (const pugi::xml_attribute attribute : node_.attributes()) {
            const std::string name = attribute.name();
            if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
            into.emplace_back(name, take(name.c_str()));
        }
    }

    [[nodiscard]] Status status() const { return status_; }

   private:
    std::string_view take(const char* name) {
        known_.emplace_back(name);
        const std::string_view value = node_.attribute(name).value();
        if (value.size() > XmlLimits::kText) {
            refuse(name, value, concat("is longer than ", XmlLimits::kText, " bytes"));
            return {};
        }
        return value;
    }

    void refuse(const char* name, std::string_view value, const std::string& right) {
        if (!status_.is_ok()) return;
        status_ = text_.refuse(node_, "<", node_.name(), "> has ", name, "=\"", shown(value),
                               "\", which ", right);
    }

    const XmlText& text_;
    pugi::xml_node node_;
    Source source_;
    std::vector<std::string> known_;
    Status status_;
};

class MachineReader {
   public:
    MachineReader(const XmlText& text, Source source, Warnings& warnings)
        : text_(text), source_(source), warnings_(warnings) {}

    Result<Machine> read(pugi::xml_node root) {
        PCCL_TRY(check_root(root));
        Machine machine;
        if (const auto name = root.attribute("name")) machine.name = {name.value(), source_};
        for (const pugi::xml_node child : root.children()) {
            if (is(child, "cpu"))
                PCCL_TRY(read_cpu(child, machine.cpus.emplace_back()));
            else
                skip(child);
        }
        return machine;
    }

   private:
    static bool is(pugi::xml_node node, std::string_view tag) { return node.name() == tag; }

    Status check_root(pugi::xml_node root) const {
        if (!is(root, "system"))
            return text_.refuse(root, "the root is <", shown(root.name()),
                                ">; NCCL's topology has <system version=\"1\">");
        const std::string_view version = root.attribute("version").value();
        if (version == "1") return Status::ok();
        return Status::unsupported(
            concat(text_.place(root), ": <system> has version=\"", shown(version),
                   "\", and only 1, NCCL's, is read",
                   version == "2"
                       ? "; 2 is RCCL's, for AMD's GPUs: give hwloc's XML of the machine instead "
                         "(lstopo machine.xml)"
                       : ""));
    }

    template <typename Element>
    Status read_fields(pugi::xml_node node, Element& element) const {
        FieldReader fields(text_, node, source_);
        list_fields(element, fields);
        return fields.status();
    }

    Status read_cpu(pugi::xml_node node, Cpu& cpu) {
        PCCL_TRY(read_fields(node, cpu));
        for (const pugi::xml_node child : node.children()) {
            if (is(child, "pci"))
                PCCL_TRY(read_device(child, cpu.devices.emplace_back()));
            else if (is(child, "nic"))
                PCCL_TRY(read_nic(child, cpu.nics.emplace_back()));
            else
                skip(child);
        }
        return Status::ok();
    }

    // Recursion is limited by XmlLimits::kDepth.
    Status read_device(pugi::xml_node node, PciDevice& device) {  // NOLINT(misc-no-recursion)
        PCCL_TRY(read_fields(node, device));
        if (!device.bus_id.is_known())
            return text_.refuse(node, "<pci> has no busid; it needs one such as 0000:0d:00.0");
        for (const pugi::xml_node child : node.children()) {
            if (is(child, "pci"))
                PCCL_TRY(read_device(child, device.children.emplace_back()));
            else if (is(child, "gpu"))
                PCCL_TRY(read_gpu(child, device.gpus.emplace_back()));
            else if (is(child, "nic"))
                PCCL_TRY(read_nic(child, device.nics.emplace_back()));
            else if (is(child, "pcilink"))
                PCCL_TRY(read_peer(child, device.peers.emplace_back()));
            else
                skip(child);
        }
        return Status::ok();
    }

    Status read_peer(pugi::xml_node node, std::string& peer) const {
        auto target = parse_bus_id(node.attribute("target").value());
        if (!target) return text_.refuse(node, "<pcilink> needs a target such as 0000:0d:00.0");
        peer = *std::move(target);
        return Status::ok();
    }

    Status read_gpu(pugi::xml_node node, Gpu& gpu) {
        PCCL_TRY(read_fields(node, gpu));
        for (const pugi::xml_node child : node.children()) {
            if (is(child, "nvlink"))
                PCCL_TRY(read_fields(child, gpu.nvlinks.emplace_back()));
            else if (is(child, "c2c"))
                PCCL_TRY(read_fields(child, gpu.c2c.emplace()));
            else
                skip(child);
        }
        return Status::ok();
    }

    Status read_nic(pugi::xml_node node, Nic& nic) {
        for (const pugi::xml_node child : node.children()) {
            if (is(child, "net"))
                PCCL_TRY(read_fields(child, nic.nets.emplace_back()));
            else
                skip(child);
        }
        return Status::ok();
    }

    void skip(pugi::xml_node node) {
        if (node.type() != pugi::node_element) return;
        warnings_.push_back({.name = "unknown_element",
                             .subject = text_.place(node),
                             .message = concat("<", shown(node.name()), "> in <",
                                               shown(node.parent().name()), "> is not known"),
                             .repair = "it is left out"});
    }

    const XmlText& text_;
    Source source_;
    Warnings& warnings_;
};

class FieldWriter {
   public:
    explicit FieldWriter(pugi::xml_node node) : node_(node) {}

    void number(const char* name, const Attribute<int>& from, int /*low*/, int /*high*/) {
        if (from.is_known()) node_.append_attribute(name).set_value(*from);
    }
    void text(const char* name, const Attribute<std::string>& from) {
        if (from.is_known()) node_.append_attribute(name).set_value(from.value_or("").c_str());
    }
    void bus_id(const char* name, const Attribute<std::string>& from) { text(name, from); }
    void extras(const Extras& extras) {
        for (const auto& [name, value] : extras)
            node_.append_attribute(name.c_str()).set_value(value.c_str());
    }

   private:
    pugi::xml_node node_;
};

template <typename Element>
pugi::xml_node write_fields(pugi::xml_node parent, const char* tag, Element& element) {
    pugi::xml_node node = parent.append_child(tag);
    FieldWriter fields(node);
    list_fields(element, fields);
    return node;
}

void write_nics(pugi::xml_node parent, std::vector<Nic>& nics) {
    for (Nic& nic : nics) {
        pugi::xml_node node = parent.append_child("nic");
        for (Net& net : nic.nets) write_fields(node, "net", net);
    }
}

void write_gpu(pugi::xml_node parent, Gpu& gpu) {
    const pugi::xml_node node = write_fields(parent, "gpu", gpu);
    for (NvLink& link : gpu.nvlinks) write_fields(node, "nvlink", link);
    if (gpu.c2c) write_fields(node, "c2c", *gpu.c2c);
}

void write_device(pugi::xml_node parent, PciDevice& device) {  // NOLINT(misc-no-recursion)
    pugi::xml_node node = write_fields(parent, "pci", device);
    for (Gpu& gpu : device.gpus) write_gpu(node, gpu);
    write_nics(node, device.nics);
    for (PciDevice& child : device.children) write_device(node, child);
    for (const std::string& peer : device.peers)
        node.append_child("pcilink").append_attribute("target").set_value(peer.c_str());
}

}  // namespace

Result<Machine> parse_machine_xml(std::string_view text, std::string_view name, Source source,
                                  Warnings& warnings) {
    XmlText xml(text, name);
    PCCL_ASSIGN_OR_RETURN(const pugi::xml_node root, xml.load());
    return MachineReader(xml, source, warnings).read(root);
}

std::string machine_xml(const Machine& machine) {
    Machine copy = machine;
    pugi::xml_document document;
    pugi::xml_node root = document.append_child("system");
    root.append_attribute("version").set_value(1);
    if (copy.name.is_known())
        root.append_attribute("name").set_value(copy.name.value_or("").c_str());
    for (Cpu& cpu : copy.cpus) {
        const pugi::xml_node node = write_fields(root, "cpu", cpu);
        for (PciDevice& device : cpu.devices) write_device(node, device);
        write_nics(node, cpu.nics);
    }
    return to_text(document);
}

}  // namespace pccl::topo
