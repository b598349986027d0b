// SPDX-License-Identifier: Apache-2.0

// Two sessions whose memory is of GPUs, for each path between them.
#pragma once

#include <algorithm>
#include <bit>

#include "csrc/base/ids.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/mapping.h"
#include "tests/cpp/p2p/pair.h"
#include "tests/fakes/late_cuda.h"

namespace pccl::p2p {

using transport::Mapping;

/// Where memory is.
enum class Place { kHost, kGpu, kUnshareableGpu };

struct RouteCase {
    std::string transports;
    Place here;
    Place there;
    std::string path;
};
inline void PrintTo(const RouteCase& route, std::ostream* out) { *out << route.path; }

/// GPUs of this machine, while it lives.
class StandIn {
   public:
    StandIn() { sys::cuda::let_stand_in(&driver); }
    ~StandIn() { sys::cuda::let_stand_in(nullptr); }
    StandIn(const StandIn&) = delete;
    StandIn& operator=(const StandIn&) = delete;

    fakes::LateCudaDriver driver;
};

class GpuSessionTest : public testing::TestWithParam<RouteCase> {
   protected:
    static constexpr std::size_t kBytes = 3 * kMiB + 17;

    GpuSessionTest() { driver_.be_late(3); }
    ~GpuSessionTest() override {
        // Before their memory is gone.
        client_->close();
        server_->close();
    }

    /// Registered, with bytes that tell where they are from.
    struct Stamped {
        Mapping mapping;
        std::shared_ptr<LocalMemory> local;

        [[nodiscard]] std::span<std::byte> bytes() const { return mapping.memory(); }
        [[nodiscard]] LocalExtent all() const { return {local, {0, bytes().size()}}; }
    };
    Stamped stamped(Session& session, Place place, unsigned seed) {
        auto mapping =
            place == Place::kGpu ? Mapping::shareable("gpu", kBytes) : Mapping::anonymous(kBytes);
        Stamped made{std::move(mapping.value()), nullptr};
        for (std::size_t i = 0; i < kBytes; ++i) made.bytes()[i] = p2p::Stamped::stamp(i, seed);
        if (place != Place::kHost) driver_.adopt(made.mapping, 0);
        auto local = place == Place::kHost ? session.register_memory(made.bytes())
                                           : session.register_gpu_memory(made.bytes(), 0);
        EXPECT_TRUE(local.is_ok()) << local.status().to_string();
        made.local = *local;
        return made;
    }

    StandIn gpus_;  // before sessions
    fakes::LateCudaDriver& driver_ = gpus_.driver;
    std::unique_ptr<Session> server_ = session("server", GetParam().transports);
    std::unique_ptr<Session> client_ = session("client", GetParam().transports);
    Stamped theirs_ = stamped(*server_, GetParam().there, 1);
    Stamped mine_ = stamped(*client_, GetParam().here, 2);
    RemoteMemory remote_ = seen_by(*client_, *server_, *theirs_.local);
};

/// A stream of the program's own, and what it has it do.
class OrderedReadTest : public GpuSessionTest {
   protected:
    std::shared_ptr<const Plan> all_in_one_ =
        Plan::make({mine_.local, Extent{0, kBytes}}, {remote_, Extent{0, kBytes}}).value();

    void copy(std::span<const std::byte> from, std::span<std::byte> into) {
        const sys::cuda::Copy copy{.to = std::bit_cast<sys::cuda::DeviceAddress>(into.data()),
                                   .from = std::bit_cast<sys::cuda::DeviceAddress>(from.data()),
                                   .bytes = from.size()};
        ASSERT_TRUE(driver_.copy_all({&copy, 1}, stream_.stream).is_ok());
    }
    /// Without a look at any session.
    void await_stream() {
        const auto end = driver_.record(stream_.stream).value();
        const Deadline deadline = test_deadline();
        while (!driver_.has_come(end).value()) ASSERT_FALSE(deadline.passed());
        ASSERT_TRUE(driver_.destroy_event(end).is_ok());
    }
    Result<Work> read(std::string_view notification = {}) {
        return client_->read_in_order(stream_, all_in_one_, test_deadline(), {},
                                      bytes_of(notification));
    }

    const Stream stream_{driver_.create_stream(0).value(), 0};
};

}  // namespace pccl::p2p
