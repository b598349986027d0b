// SPDX-License-Identifier: Apache-2.0

#include "tests/fakes/verbs/devices.h"

#include <arpa/inet.h>
#include <endian.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>
#include <string_view>

#include "tests/fakes/verbs/fabric.h"
#include "tests/fakes/verbs/queues.h"

namespace pccl::fake_verbs {

namespace {

struct Speed {
    const char* name;
    uint8_t code;
};
constexpr Speed kSpeeds[] = {{"sdr", 1},  {"ddr", 2},  {"qdr", 4},  {"fdr", 16},
                             {"edr", 32}, {"hdr", 64}, {"ndr", 128}};

std::string_view value_of(const std::string& option, std::string_view name) {
    const std::string_view given = option;
    return given.substr(0, name.size()) == name ? given.substr(name.size()) : std::string_view{};
}

void set_option(Device& device, const std::string& option) {
    const std::string_view mtu = value_of(option, "mtu=");
    const std::string_view speed = value_of(option, "speed=");
    if (option == "ib") device.infiniband = true;
    if (option == "iwarp") device.iwarp = true;
    if (option == "down") device.down = true;
    if (!option.empty() && std::isdigit(static_cast<unsigned char>(option[0])) != 0) {
        device.ports = std::atoi(option.c_str());
    }
    for (int code = IBV_MTU_256; code <= IBV_MTU_4096; ++code) {
        if (mtu == std::to_string(128 << code)) device.mtu = static_cast<ibv_mtu>(code);
    }
    for (const Speed& known : kSpeeds) {
        if (speed == known.name) device.speed = known.code;
    }
}

Device* parse_device(const std::string& text, int number) {
    auto* device = new Device{};
    device->number = number;
    device->ports = 1;
    device->mtu = IBV_MTU_4096;
    device->speed = 32;  // EDR, 25 Gbit/s a lane
    device->width = 2;   // 4 lanes
    std::istringstream parts(text);
    std::string part;
    std::getline(parts, part, ':');
    std::snprintf(device->base.name, sizeof device->base.name, "%s", part.c_str());
    device->iwarp = part.substr(0, 3) == "siw";
    while (std::getline(parts, part, ':')) set_option(*device, part);
    ibv_device& base = device->base;
    base.node_type = device->iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
    base.transport_type = device->iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
    std::snprintf(base.dev_name, sizeof base.dev_name, "uverbs%d", number);
    std::snprintf(base.dev_path, sizeof base.dev_path, "/sys/class/infiniband_verbs/uverbs%d",
                  number);
    std::snprintf(base.ibdev_path, sizeof base.ibdev_path, "/sys/class/infiniband/%.64s",
                  base.name);
    return device;
}

void set_gids(SharedPort& port, const Device& device, int number) {
    const auto host = static_cast<uint8_t>(port.host);
    const auto of_device = static_cast<uint8_t>(device.number);
    const auto of_port = static_cast<uint8_t>(number);
    for (int i = 0; i < kGids; ++i) {
        ibv_gid& gid = port.gids[i];
        gid = {};
        if (device.iwarp) {  // its hardware address alone
            const uint8_t hardware[6] = {2, 0x77, host, 0, of_device, of_port};
            if (i == 0) std::memcpy(gid.raw, hardware, sizeof hardware);
        } else if (i < 2) {
            const uint8_t local[16] = {0xfe, 0x80, 0,    0,    0,    0, 0,         0,
                                       2,    0x77, host, 0xff, 0xfe, 0, of_device, of_port};
            std::memcpy(gid.raw, local, sizeof local);
        } else {
            const uint8_t mapped[6] = {0xff,      0xff,   10, static_cast<uint8_t>(77 + host),
                                       of_device, of_port};
            std::memcpy(gid.raw + 10, mapped, sizeof mapped);
        }
    }
}

bool is_port(const SharedPort& port, int host, const char* device, int number) {
    return port.used && port.host == host && port.number == number &&
           std::strcmp(port.device, device) == 0;
}

// The ports of a device follow one another in the table.
void add_ports(Device& device) {
    Fabric& all = fabric();
    const int host = this_process().host;
    for (Index i = 0; i < all.ports_end; ++i) {
        if (!is_port(all.ports[i], host, device.base.name, 1)) continue;
        device.first_port = i;
        return;
    }
    device.first_port = all.ports_end;
    for (int number = 1; number <= device.ports && all.ports_end < kMaxPorts; ++number) {
        SharedPort& port = all.ports[all.ports_end];
        port = {};
        port.host = host;
        std::snprintf(port.device, sizeof port.device, "%s", device.base.name);
        port.number = number;
        port.infiniband = device.infiniband;
        port.iwarp = device.iwarp;
        port.up = !device.down;
        port.mtu = device.mtu;
        port.lid = device.infiniband ? static_cast<uint16_t>(all.ports_end + 1) : 0;
        set_gids(port, device, number);
        port.used = true;
        ++all.ports_end;
    }
}

std::vector<Device*>* parse_devices() {
    auto* found = new std::vector<Device*>;
    const char* given = std::getenv("FAKE_VERBS_DEVICES");
    std::istringstream texts(given != nullptr ? given : "fake0");
    std::string text;
    while (std::getline(texts, text, ',')) {
        if (!text.empty()) found->push_back(parse_device(text, static_cast<int>(found->size())));
    }
    return found;
}

}  // namespace

const std::vector<Device*>& devices() {
    static std::mutex* guard = new std::mutex;
    static std::vector<Device*>* known = nullptr;
    static Fabric* of_fabric = nullptr;
    Fabric* current = &fabric();
    const std::lock_guard hold(*guard);
    if (known == nullptr || of_fabric != current) {  // a child of fork() is in another one
        known = parse_devices();
        of_fabric = current;
        const Lock lock;
        for (Device* device : *known) add_ports(*device);
    }
    return *known;
}

SharedPort* find_port_of(ibv_context* context, uint32_t port) {
    const Device& device = *of(context).device;
    if (port < 1 || port > static_cast<uint32_t>(device.ports)) return nullptr;
    return &fabric().ports[device.first_port + port - 1];
}

Index find_port_named(const char* device, int port) {
    devices();
    const Fabric& all = fabric();
    for (Index i = 0; i < all.ports_end; ++i) {
        if (is_port(all.ports[i], this_process().host, device, port)) return i;
    }
    return kNone;
}

void push_device_event(Index first_port, int ports, ibv_event_type type, uint64_t element) {
    Fabric& all = fabric();
    for (Index i = 0; i < all.contexts_end; ++i) {
        const SharedContext& context = all.contexts[i];
        if (!context.used || context.port >= first_port + static_cast<Index>(ports)) continue;
        if (context.port + static_cast<Index>(context.ports) <= first_port) continue;
        push_event(i, type, element);
    }
}

bool is_soft(const Device& device) {
    const std::string_view kind = std::string_view(device.base.name).substr(0, 3);
    return kind == "rxe" || kind == "siw";
}

}  // namespace pccl::fake_verbs

using pccl::fake_verbs::Device;

ibv_device** ibv_get_device_list(int* number) {
    const auto& known = pccl::fake_verbs::devices();
    auto** list = static_cast<ibv_device**>(std::calloc(known.size() + 1, sizeof(ibv_device*)));
    for (size_t i = 0; i < known.size(); ++i) list[i] = &known[i]->base;
    if (number != nullptr) *number = static_cast<int>(known.size());
    return list;
}

void ibv_free_device_list(ibv_device** list) { std::free(list); }

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

int ibv_get_device_index(ibv_device* device) { return reinterpret_cast<Device*>(device)->number; }

__be64 ibv_get_device_guid(ibv_device* device) {
    const auto& known = *reinterpret_cast<Device*>(device);
    const auto host = static_cast<uint64_t>(pccl::fake_verbs::this_process().host);
    return htobe64(0x0277'00ff'fe00'0000 | host << 40 | static_cast<uint64_t>(known.number) << 8);
}
