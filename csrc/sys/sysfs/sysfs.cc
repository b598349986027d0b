// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/sysfs/sysfs.h"

#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::sys {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestEntry = 1U << 16U;

int number(std::string_view text, int otherwise) {
    int value = otherwise;
    if (text.starts_with("0x")) text.remove_prefix(2);
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

/// Returns the speed of an RDMA port: "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)"; -1: unknown.
int megabits_in(std::string_view rate) {
    double gigabits = 0;
    std::from_chars(rate.data(), rate.data() + rate.size(), gigabits);
    constexpr double kMost = 1e6;  // 1 Pb/s
    return gigabits > 0 && gigabits < kMost ? static_cast<int>(gigabits * 1000) : -1;
}

/// Returns whether a name has the form "0000:0d:00.0".
bool is_bus_id(const std::string& name) {
    return name.size() >= 12 && name[name.size() - 2] == '.' && name[name.size() - 5] == ':' &&
           name[name.size() - 8] == ':';
}

/// Returns the value of "key : value" in /proc/cpuinfo.
std::string field(std::string_view text, std::string_view key) {
    for (std::size_t start = 0; start < text.size();) {
        const std::size_t end = std::min(text.find('\n', start), text.size());
        const std::string_view line = text.substr(start, end - start);
        const std::size_t colon = line.find(':');
        if (colon != std::string_view::npos && line.starts_with(key) &&
            line.substr(0, colon).find_last_not_of(" \t") + 1 == key.size())
            return colon + 2 <= line.size() ? std::string(line.substr(colon + 2)) : std::string();
        start = end + 1;
    }
    return {};
}

}  // namespace

std::string Sysfs::read(const std::string& path) const {
    auto text = read_start(root_ + path, kLongestEntry);
    if (!text.is_ok()) {
        note(text.status());
        return {};
    }
    while (!text->empty() && (text->back() == '\n' || text->back() == ' ')) text->pop_back();
    return *std::move(text);
}

std::vector<std::string> Sysfs::list(const std::string& folder) const {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(root_ + folder, error), end; !error && entry != end;
         entry.increment(error))
        names.push_back(entry->path().filename());
    if (error) note(Status::from_errno(error.value(), concat("cannot list ", root_, folder)));
    std::sort(names.begin(), names.end());
    return names;
}

void Sysfs::note(const Status& fault) const {
    if (fault.code() == StatusCode::kResourceExhausted && shortage_.is_ok()) shortage_ = fault;
}

/// Returns the bus ids along a path below /sys/devices.
std::vector<std::string> Sysfs::chain_of(const std::string& path) const {
    std::vector<std::string> chain;
    std::error_code error;
    const fs::path real = fs::canonical(root_ + path, error);
    if (error) return chain;
    for (const fs::path& part : real)
        if (is_bus_id(part.string())) chain.push_back(part.string());
    return chain;
}

SysfsPciDevice Sysfs::pci_device(const std::string& bus_id) const {
    const std::string folder = "/sys/bus/pci/devices/" + bus_id + "/";
    SysfsPciDevice device{.bus_id = bus_id,
                          .above = chain_of(folder),
                          .class_code = read(folder + "class"),
                          .vendor = read(folder + "vendor"),
                          .device = read(folder + "device"),
                          .subsystem_vendor = read(folder + "subsystem_vendor"),
                          .subsystem_device = read(folder + "subsystem_device"),
                          .max_link_speed = read(folder + "max_link_speed"),
                          .max_link_width = number(read(folder + "max_link_width"), 0),
                          .numa = numa_of(bus_id)};
    if (!device.above.empty()) device.above.pop_back();
    return device;
}

int Sysfs::numa_of(const std::string& bus_id) const {
    return number(read("/sys/bus/pci/devices/" + bus_id + "/numa_node"), -1);
}

std::vector<SysfsPciDevice> Sysfs::pci_devices() const {
    std::vector<SysfsPciDevice> devices;
    for (const std::string& bus_id : list("/sys/bus/pci/devices"))
        if (is_bus_id(bus_id)) devices.push_back(pci_device(bus_id));
    return devices;
}

/// Returns the interface of an RDMA device that has no hardware of its own.
std::string Sysfs::interface_of(const std::string& card) const {
    const std::string folder = "/sys/class/infiniband/" + card;
    const std::string parent = read(folder + "/parent");
    return parent.empty() ? read(folder + "/ports/1/gid_attrs/ndevs/0") : parent;
}

/// Returns ports of RDMA devices that are not down. Emulated ones without a PCIe device have an
/// empty bus id.
std::vector<SysfsPort> Sysfs::rdma_ports() const {
    std::vector<SysfsPort> ports;
    for (const std::string& card : list("/sys/class/infiniband")) {
        const std::string folder = "/sys/class/infiniband/" + card;
        std::vector<std::string> chain = chain_of(folder + "/device");
        const std::string interface = chain.empty() ? interface_of(card) : std::string();
        if (!interface.empty()) chain = chain_of(concat("/sys/class/net/", interface, "/device"));
        std::string guid = read(folder + "/node_guid");
        std::erase(guid, ':');
        for (const std::string& port : list(folder + "/ports")) {
            const std::string entry = concat(folder, "/ports/", port);
            if (read(entry + "/state").find("DOWN") != std::string::npos) continue;
            ports.push_back({.name = card,
                             .bus_id = chain.empty() ? std::string() : chain.back(),
                             .rdma = true,
                             .port = number(port, 1),
                             .megabits = megabits_in(read(entry + "/rate")),
                             .guid = guid.empty() ? guid : "0x" + guid,
                             .emulated_on = interface});
        }
    }
    return ports;
}

std::vector<SysfsPort> Sysfs::ports() const {
    std::vector<SysfsPort> ports = rdma_ports();
    std::erase_if(ports, [](const SysfsPort& port) { return port.bus_id.empty(); });
    for (const std::string& name : list("/sys/class/net")) {
        const std::string folder = "/sys/class/net/" + name;
        const std::vector<std::string> chain = chain_of(folder + "/device");
        if (chain.empty() || read(folder + "/operstate") == "down") continue;
        ports.push_back({.name = name,
                         .bus_id = chain.back(),
                         .megabits = number(read(folder + "/speed"), -1),
                         .guid = {}});
    }
    return ports;
}

std::vector<SysfsPort> Sysfs::virtual_interfaces() const {
    constexpr std::string_view kEthernet = "1";  // ARPHRD_ETHER
    std::vector<SysfsPort> interfaces = rdma_ports();
    std::erase_if(interfaces, [](const SysfsPort& port) { return !port.bus_id.empty(); });
    for (const std::string& name : list("/sys/class/net")) {
        const std::string folder = "/sys/class/net/" + name;
        if (read(folder + "/type") != kEthernet || read(folder + "/operstate") != "up" ||
            !list(folder + "/bridge").empty() || !list(folder + "/device").empty())
            continue;
        interfaces.push_back({.name = name,
                              .bus_id = {},
                              .megabits = number(read(folder + "/speed"), -1),
                              .guid = {}});
    }
    return interfaces;
}

bool Sysfs::has_peer_memory() const { return !read("/sys/module/nvidia_peermem/refcnt").empty(); }

std::vector<int> Sysfs::numa_nodes() const {
    std::vector<int> nodes;
    for (const std::string& name : list("/sys/devices/system/node"))
        if (name.starts_with("node") && name.size() > 4) {
            const int node = number(std::string_view(name).substr(4), -1);
            const std::string cores = node < 0 ? "" : cores_of(node);
            if (cores.find_first_not_of("0,") != std::string::npos) nodes.push_back(node);
        }
    std::sort(nodes.begin(), nodes.end());
    return nodes;
}

std::string Sysfs::cores_of(int numa) const {
    return read(concat("/sys/devices/system/node/node", numa, "/cpumap"));
}

SysfsCpu Sysfs::cpu() const {
    utsname system{};
    const bool is_known = ::uname(&system) == 0;
    const std::string machine = is_known ? static_cast<const char*>(system.machine) : "";
    const std::string info = read("/proc/cpuinfo");
    return {.arch = machine == "aarch64" ? "arm64" : machine,
            .vendor = field(info, "vendor_id"),
            .family = number(field(info, "cpu family"), -1),
            .model = number(field(info, "model"), -1)};
}

/// Reads Access Control Services (PCI Express Base Specification, 6.12). This extended capability
/// has a control register that redirects requests between peers up to the root. Only root can read
/// capabilities.
bool Sysfs::redirects_peers(const std::string& bus_id) const {
    constexpr std::size_t kFirst = 0x100;
    constexpr unsigned kAcs = 0x0D;
    constexpr unsigned kRedirects = 0b1100;  // requests, completions
    const auto config = read_file(root_ + "/sys/bus/pci/devices/" + bus_id + "/config", 4096);
    if (!config.is_ok()) {
        note(config.status());
        return false;
    }
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>((*config)[i]); };
    std::size_t place = kFirst;
    for (int seen = 0; seen < 64 && place >= kFirst && place + 8 <= config->size(); ++seen) {
        const unsigned id = byte(place) | static_cast<unsigned>(byte(place + 1)) << 8U;
        if (id == kAcs) return (byte(place + 6) & kRedirects) != 0;
        place = (static_cast<std::size_t>(byte(place + 3)) << 4U) | (byte(place + 2) >> 4U);
    }
    return false;
}

bool Sysfs::has_iommu() const { return !list("/sys/class/iommu").empty(); }

}  // namespace pccl::sys
