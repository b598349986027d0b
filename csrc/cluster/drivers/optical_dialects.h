// SPDX-License-Identifier: Apache-2.0

// Dialects of optical switches, as data.
#pragma once

#include <array>
#include <string_view>

#include "csrc/cluster/drivers/dialect.h"

namespace pccl::cluster::dialects {

constexpr std::array<std::string_view, 1> kCrossConnects = {"cross-connects"};
constexpr std::array<std::string_view, 1> kIngress = {"ingress"};
constexpr std::array<std::string_view, 1> kEgress = {"egress"};
constexpr std::array<std::string_view, 1> kState = {"state"};
constexpr std::array<std::string_view, 2> kMediaChannels = {"wavelength-router", "media-channels"};
constexpr std::array<std::string_view, 3> kSourcePort = {"source", "config", "port-name"};
constexpr std::array<std::string_view, 3> kDestPort = {"dest", "config", "port-name"};

constexpr std::string_view kPairKey = "<ingress>{in}</ingress>";
constexpr std::string_view kPair = "<ingress>{in}</ingress><egress>{out}</egress>";

/// PCCL's own module: csrc/cluster/yang/pccl-optical-switch.yang.
constexpr Dialect kPccl{.name = "pccl",
                        .name_space = "urn:pccl:yang:optical-switch",
                        .containers = kCrossConnects,
                        .entry = "pair",
                        .key = kPairKey,
                        .content = kPair,
                        .ingress = kIngress,
                        .egress = kEgress,
                        .state = kState,
                        .dark = "dark"};

/// HUBER+SUHNER Polatis.
constexpr Dialect kPolatis{.name = "polatis",
                           .name_space = "http://www.polatis.com/yang/optical-switch",
                           .containers = kCrossConnects,
                           .entry = "pair",
                           .key = kPairKey,
                           .content = kPair,
                           .ingress = kIngress,
                           .egress = kEgress};

/// Polatis with older firmware.
constexpr Dialect kPolatisPairs{.name = "polatis-pairs",
                                .name_space = "http://www.polatis.com/yang/optical-switch",
                                .containers = kCrossConnects,
                                .entry = "pairs",
                                .key = kPairKey,
                                .content = kPair,
                                .ingress = kIngress,
                                .egress = kEgress};

/// A channel has the number of its ingress; ports are named by their numbers.
constexpr Dialect kWavelengthRouter{
    .name = "openconfig-wavelength-router",
    .name_space = "http://openconfig.net/yang/wavelength-router",
    .containers = kMediaChannels,
    .entry = "channel",
    .key = "<index>{in}</index>",
    .content =
        "<index>{in}</index><config><index>{in}</index><admin-status>ENABLED</admin-status>"
        "</config><source><config><port-name>{in}</port-name></config></source>"
        "<dest><config><port-name>{out}</port-name></config></dest>",
    .ingress = kSourcePort,
    .egress = kDestPort};

}  // namespace pccl::cluster::dialects
