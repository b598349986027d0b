// SPDX-License-Identifier: Apache-2.0

// Delayed acknowledgements of short messages, on sockets that only receive.
//
// A stream has one direction, so that its acknowledgements have no data to travel with. By default
// Linux sends one whenever a reader has emptied the socket, and within that read: this takes 1 to 2
// us of a message over loopback. The acknowledgement can wait for the next message, or 40 ms, as on
// a socket that sends answers. After one has waited that long, the kernel acknowledges at once
// again, until the option is set anew. Long messages are acknowledged at once: their sender waits
// for the room.
#pragma once

#include <cstddef>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::tcp {

class DelayedAcks {
   public:
    explicit DelayedAcks(std::size_t sockets) : recent_(sockets) {}

    /// Adjusts the option. The call follows a read of up to `wanted` bytes from the socket of this
    /// index that returned some.
    void received(int fd, std::size_t index, std::size_t wanted) {
        Recent& recent = recent_[index];
        if (wanted > kShort) {
            if (recent.are_delayed) sys::acknowledge(fd, sys::Acknowledge::kAtOnce);
            recent = {};
        } else if (++recent.short_reads % kSetEvery == 0) {
            sys::acknowledge(fd, sys::Acknowledge::kDelayed);
            recent.are_delayed = true;
        }
    }

   private:
    /// Between two ranks, delayed acknowledgements saved 8 % of the time of 32 KiB messages, and
    /// cost 10 % at 48 KiB.
    static constexpr std::size_t kShort = 32 * kKiB;
    /// Short reads between two settings: more than a long message ends with, and a system call is
    /// cheap beside them.
    static constexpr unsigned kSetEvery = 8;

    struct Recent {
        unsigned short_reads = 0;  // since the last long one
        bool are_delayed = false;  // state of the kernel's option
    };
    std::vector<Recent> recent_;  // by socket
};

}  // namespace pccl::transport::tcp
