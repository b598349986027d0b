// SPDX-License-Identifier: Apache-2.0

// Descriptions of ends of RDMA links, and changes of serialised ones.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "csrc/transport/verbs/link_exchange.h"

namespace pccl::transport::verbs {

inline LaneEnd lane_end(std::uint8_t device, std::uint32_t number) {
    LaneEnd end{.device = device,
                .partner = 3,
                .pair = {.number = number,
                         .sequence = 0xabcdef,
                         .lid = 513,
                         .mtu = IBV_MTU_4096,
                         .reads = 16,
                         .is_ethernet = true}};
    for (std::size_t i = 0; i < end.pair.gid.size(); ++i)
        end.pair.gid[i] = static_cast<std::uint8_t>(17 * i);
    return end;
}

inline LinkEnd link_end() {
    return {.ring_bytes = 1 * kMiB,
            .receives = 64,
            .memory = {{.address = 0x7f0000001000, .bytes = 2 * kMiB, .keys = {11, 12}},
                       {.address = 0x7f0000400000, .bytes = 2 * kMiB, .keys = {13, 14}},
                       {.address = 0x7f0000800000, .bytes = 4096, .keys = {15, 0xffffffff}}},
            .lanes = {lane_end(0, 1), lane_end(1, 0xffffff), lane_end(1, 3)}};
}

/// Calls `check` with `bytes` after each change of a single bit.
inline void for_each_flip(const std::string& bytes,
                          const std::function<void(const std::string&)>& check) {
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        std::string changed = bytes;
        changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
        check(changed);
    }
}

}  // namespace pccl::transport::verbs
