// SPDX-License-Identifier: Apache-2.0

// Map of XML attributes to members, shared by reading and writing.
//
// `Fields` has number(name, attribute, low, high), text(name, attribute), bus_id(name, attribute)
// and extras(extras).
#pragma once

#include "csrc/topo/machine/machine.h"

namespace pccl::topo {

inline constexpr int kMostIndex = 1 << 20;
inline constexpr int kMostMegabits = 100'000'000;

template <typename Fields>
void list_fields(Cpu& cpu, Fields& fields) {
    constexpr int kMostNuma = 4095;
    fields.text("host_hash", cpu.host);
    fields.number("numaid", cpu.numa, -1, kMostNuma);
    fields.text("affinity", cpu.affinity);
    fields.text("arch", cpu.arch);
    fields.text("vendor", cpu.vendor);
    fields.number("familyid", cpu.family, -1, kMostIndex);
    fields.number("modelid", cpu.model, -1, kMostIndex);
    fields.extras(cpu.extras);
}

template <typename Fields>
void list_fields(PciDevice& device, Fields& fields) {
    constexpr int kMostPcieLanes = 255;
    fields.bus_id("busid", device.bus_id);
    fields.text("class", device.class_code);
    fields.text("vendor", device.vendor);
    fields.text("device", device.device);
    fields.text("subsystem_vendor", device.subsystem_vendor);
    fields.text("subsystem_device", device.subsystem_device);
    fields.text("link_speed", device.link_speed);
    fields.number("link_width", device.link_width, 0, kMostPcieLanes);
    fields.extras(device.extras);
}

template <typename Fields>
void list_fields(Gpu& gpu, Fields& fields) {
    constexpr int kMostSm = 999;
    fields.number("dev", gpu.dev, 0, kMostIndex);
    fields.number("sm", gpu.sm, 1, kMostSm);
    fields.number("rank", gpu.rank, 0, kMostIndex);
    fields.number("gdr", gpu.gdr, 0, 1);
    fields.extras(gpu.extras);
}

template <typename Fields>
void list_fields(NvLink& link, Fields& fields) {
    constexpr int kMostLinks = 1024;
    fields.bus_id("target", link.target);
    fields.number("count", link.count, 0, kMostLinks);
    fields.text("tclass", link.target_class);
}

template <typename Fields>
void list_fields(C2c& c2c, Fields& fields) {
    constexpr int kMostLinks = 1024;
    fields.number("bw", c2c.bandwidth, 0, kMostMegabits);
    fields.number("count", c2c.count, 0, kMostLinks);
}

template <typename Fields>
void list_fields(Net& net, Fields& fields) {
    constexpr int kMostPort = 65535;
    fields.text("name", net.name);
    fields.number("dev", net.dev, 0, kMostIndex);
    fields.number("speed", net.speed, -1, kMostMegabits);
    fields.number("port", net.port, -1, kMostPort);
    fields.text("guid", net.guid);
    fields.number("gdr", net.gdr, 0, 1);
    fields.extras(net.extras);
}

}  // namespace pccl::topo
