// SPDX-License-Identifier: Apache-2.0

// Reassembly of a stream from its sockets.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/link.h"
#include "csrc/transport/tcp/stripes.h"

namespace pccl::transport::tcp {

/// Delayed acknowledgements of short messages, on sockets that only receive.
///
/// A stream has one direction, so that its acknowledgements have no data to travel with. By default
/// Linux sends one whenever a reader has emptied the socket, and within that read: this takes 1 to
/// 2 us of a message over loopback. The acknowledgement can wait for the next message, or 40 ms, as
/// on a socket that sends answers. After one has waited that long, the kernel acknowledges at once
/// again, until the option is set anew. Long messages are acknowledged at once: their sender waits
/// for the room.
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

/// Receiving end of one channel.
class BlockReader {
   public:
    explicit BlockReader(Stripes stripes);

    /// Reads the next bytes of the stream that have arrived. Returns a fault after all bytes that
    /// arrived before it: the fault of the socket that has the next bytes, or any fault where no
    /// socket can have them.
    Result<std::size_t> read(MutableBytes into);
    /// Returns the end of a socket that might have had the next bytes, while they may still arrive
    /// on others.
    [[nodiscard]] Status doubt() const;
    /// Returns whether all bytes have been read and none can come. Makes system calls.
    [[nodiscard]] bool is_drained() const;
    [[nodiscard]] const Stripes& stripes() const { return stripes_; }

   private:
    /// State of a socket's next block.
    struct BlockFront {
        BlockNumber number = 0;
        std::size_t number_bytes = 0;  // bytes of the number that were read
        Status end;                    // of the socket, found while it had no further block
    };
    [[nodiscard]] static bool is_known(const BlockFront& front) {
        return front.number_bytes == sizeof front.number;
    }
    /// Makes the socket that has the next block the current one; false while the block has not
    /// arrived.
    Result<bool> find_block();
    void look_for_number(std::size_t socket);
    Result<bool> why_none() const;
    /// Reads on in the block; at its end, reads the number of the socket's next block, too.
    Result<std::size_t> read_current(MutableBytes into);
    void end_block();

    Stripes stripes_;
    DelayedAcks delayed_acks_;
    std::vector<BlockFront> fronts_;  // by socket; empty for a stream over one socket
    std::size_t current_ = 0;
    std::size_t left_ = 0;  // bytes left of the block of current_
    BlockNumber next_ = 0;
};

}  // namespace pccl::transport::tcp
