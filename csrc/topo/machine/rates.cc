// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/machine/rates.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace pccl::topo {
namespace {

constexpr double kThirdGeneration = 0.75;
constexpr double kMegabitsPerGigabyte = 8000;
constexpr double kUsualNetRate = 1.25;

struct Generation {
    double gigatransfers;
    double pcie_lane_rate;
};
constexpr std::array<Generation, 6> kGenerations{
    {{2.5, 0.1875}, {5, 0.375}, {8, kThirdGeneration}, {16, 1.5}, {32, 3}, {64, 6}}};

double intel_socket_rate(int model) {
    constexpr int kSkylake = 0x55;
    constexpr int kSapphireRapids = 0x8F;
    constexpr int kEmeraldRapids = 0xCF;
    if (model >= kEmeraldRapids) return 40;
    if (model >= kSapphireRapids) return 22;
    return model >= kSkylake ? 10 : 6;
}

}  // namespace

double nvlink_rate(int sm) {
    if (sm >= 100) return 40.1;
    if (sm >= 90) return 20.6;
    if (sm == 86) return 12;
    return sm >= 70 ? 20 : 18;
}

std::optional<double> pcie_lane_rate(std::string_view link_speed) {
    constexpr double kTolerance = 0.1;
    double speed = 0;
    const auto parsed =
        std::from_chars(link_speed.data(), link_speed.data() + link_speed.size(), speed);
    if (parsed.ec != std::errc{}) return std::nullopt;
    for (const Generation& generation : kGenerations)
        if (std::abs(speed - generation.gigatransfers) < kTolerance)
            return generation.pcie_lane_rate;
    return std::nullopt;
}

double pci_rate(const PciDevice& device) {
    const int lanes = device.link_width.value_or(0);
    return (lanes > 0 ? lanes : kUsualPcieLanes) *
           pcie_lane_rate(device.link_speed.value_or("")).value_or(kThirdGeneration);
}

double socket_rate(const Cpu& cpu) {
    const std::string vendor = cpu.vendor.value_or("");
    if (cpu.arch.value_or("x86_64") == "ppc64") return 32;
    if (cpu.arch.value_or("x86_64") == "arm64") return 6;
    if (vendor == "AuthenticAMD") return 16;
    if (vendor == "GenuineIntel") return intel_socket_rate(cpu.model.value_or(0));
    return vendor == "CentaurHauls" || vendor == "  Shanghai  " ? 6 : 9;
}

double net_rate(const Net& net) {
    const int megabits = net.speed.value_or(0);
    return megabits > 0 ? megabits / kMegabitsPerGigabyte : kUsualNetRate;
}

double c2c_rate(const C2c& c2c) { return c2c.bandwidth.value_or(0) * 1e-3 * c2c.count.value_or(1); }

double channel_rate(int sm) {
    if (sm >= 100) return 45.2;
    return sm >= 90 ? 31 : 20;
}

std::string_view usual_link_speed(int sm) {
    if (sm >= 90) return "32.0 GT/s PCIe";
    return sm >= 80 ? "16.0 GT/s PCIe" : "8.0 GT/s PCIe";
}

}  // namespace pccl::topo
