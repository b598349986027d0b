// SPDX-License-Identifier: Apache-2.0

// Seeds of the fuzzer (tests/fuzz/corpus/p2p) that have a version in them. Those of an earlier one
// are refused at their second byte, and teach it nothing.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "csrc/p2p/connection/connection_info.h"
#include "csrc/p2p/connection/control_message.h"
#include "csrc/p2p/connection/handshake.h"
#include "csrc/transport/memory_descriptor.h"
#include "tests/fakes/places.h"

namespace pccl::p2p {
namespace {

const std::filesystem::path kSeeds = fakes::in_tests("fuzz/corpus/p2p");

std::string seed(const std::string& name) {
    std::ifstream file(kSeeds / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// Leaves what it should be where it is not.
void expect_seed(const std::string& name, std::string_view bytes) {
    if (seed(name) == bytes) return;
    const std::string right = testing::TempDir() + name;
    std::ofstream(right, std::ios::binary) << bytes;
    ADD_FAILURE() << "the seed is of another version: mv " << right << ' ' << kSeeds / name;
}

ConnectionInfo seed_info() {
    ConnectionInfo info{.id = {.name = "seed", .incarnation = 0x12345678},
                        .process = {.host = "host", .pid = 7},
                        .address = {}};
    info.address.links[transport::TransportKind::kTcp] = {"10.0.0.4:5000"};
    info.probe = transport::parse_memory_descriptor(seed("descriptor")).value();
    return info;
}

TEST(FuzzSeedsTest, AreOfThisVersion) {
    constexpr std::size_t kChecksum = sizeof(std::uint32_t);  // at the end
    constexpr std::size_t kLength = sizeof(std::uint32_t);    // before a frame
    const ConnectionInfo info = seed_info();
    const std::string bytes = info.serialise();
    expect_seed("info", bytes);
    expect_seed("info_without_checksum", bytes.substr(0, bytes.size() - kChecksum));
    const Hello hello{.number = 7, .reaches = true, .ended = {3, 4}, .from = info};
    expect_seed("hello", frame_of(hello).substr(kLength));
    expect_seed("welcome", frame_of(Welcome{.number = 7, .reaches = true}).substr(kLength));
    expect_seed("lane", frame_of(LaneGreeting{.number = 7, .lane = 2}).substr(kLength));
    const auto ping = serialise(Ping{.number = 7});
    expect_seed("ping", {reinterpret_cast<const char*>(ping.data()), ping.size()});
}

}  // namespace
}  // namespace pccl::p2p
