// SPDX-License-Identifier: Apache-2.0

// Two sessions that know each other, each with a network of its own, and their memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <pccl/session.h>
#include "csrc/base/ids.h"
#include "csrc/p2p/transfers/registered_memory.h"

namespace pccl::p2p {

inline Deadline test_deadline() { return Deadline::after(std::chrono::seconds(20)); }

inline std::unique_ptr<Session> session(const std::string& name, const std::string& transports) {
    auto made = Session::create({.name = name, .transports = transports});
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return std::move(*made);
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}
inline std::string text_of(const Notification& notification) {
    return {reinterpret_cast<const char*>(notification.bytes.data()), notification.bytes.size()};
}

/// Registered with a session; bytes that tell where they are from.
class Stamped {
   public:
    Stamped(Session& session, std::size_t bytes, unsigned seed) : bytes_(bytes) {
        for (std::size_t i = 0; i < bytes; ++i) bytes_[i] = stamp(i, seed);
        local = session.register_memory(bytes_).value();
    }
    [[nodiscard]] static std::byte stamp(std::size_t at, unsigned seed) {
        return static_cast<std::byte>((at * 2654435761U + seed * 97U) >> 3);
    }
    [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }
    [[nodiscard]] LocalExtent all() const { return {local, {0, bytes_.size()}}; }

   private:
    std::vector<std::byte> bytes_;

   public:
    std::shared_ptr<LocalMemory> local;
};

/// What one session sees of another's memory.
inline RemoteMemory seen_by(Session& session, Session& owner, const LocalMemory& memory) {
    EXPECT_EQ(session.load_remote_conn_info(owner.connection_info()).status().to_string(), "ok");
    return session.import_memory(owner.id().name, memory.serialised_descriptor()).value();
}

/// That memory, with a forged descriptor.
inline RemoteMemory forged(const RemoteMemory& memory, const abi::MemoryDescriptor& descriptor) {
    return imported(memory.owner(), descriptor);
}
template <typename Change>
RemoteMemory changed(const RemoteMemory& memory, const Change& change) {
    abi::MemoryDescriptor descriptor = memory.imported().descriptor;
    change(descriptor);
    return forged(memory, descriptor);
}

inline RemoteExtent all_of(const RemoteMemory& memory) { return {memory, {0, memory.bytes()}}; }

inline Status ended(Result<Work> work) {
    return work.is_ok() ? work->wait(test_deadline()) : work.status();
}

class Pair : public testing::TestWithParam<std::string> {
   protected:
    static constexpr std::size_t kBytes = 3 * kMiB + 17;

    std::unique_ptr<Session> server_ = session("server", GetParam());
    std::unique_ptr<Session> client_ = session("client", GetParam());
    Stamped theirs_{*server_, kBytes, 1};
    Stamped mine_{*client_, kBytes, 2};
    RemoteMemory remote_ = seen_by(*client_, *server_, *theirs_.local);
};

}  // namespace pccl::p2p
