// Which socket the next bytes of a stream go to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "csrc/transport/link.h"
#include "csrc/transport/tcp/stripes.h"

namespace pccl::transport::tcp {

/// Of one channel's sending end:
///
///     if (!writer.choose()) ... no socket has room
///     do {
///         ... send what socket() takes of number() and then of the next left() bytes
///     } while (nothing was taken && writer.pass_on());
class BlockWriter {
   public:
    explicit BlockWriter(Stripes stripes);

    /// Where a block is to begin, puts the sockets into the order in which they are to be asked;
    /// false when none has room for it. The kernel then tells once one has.
    [[nodiscard]] bool choose() { return !may_choose() || has_candidates() || others_have_room(); }
    /// Whether a socket is left that may take the block which socket() did not even begin.
    [[nodiscard]] bool pass_on();

    [[nodiscard]] int socket() const { return stripes_.socket(order_[asked_]); }
    /// What goes before the next byte of the stream; empty within a block.
    [[nodiscard]] Bytes number() const {
        return std::as_bytes(std::span(&number_, 1)).last(number_left_);
    }
    /// Bytes of the stream that socket() is to have next.
    [[nodiscard]] std::size_t left() const { return left_; }
    /// Counts what socket() took of number() and left(); returns how much of the stream that is.
    std::size_t advance(std::size_t taken);
    [[nodiscard]] const Stripes& stripes() const { return stripes_; }

    /// Bytes that the kernel takes though the receiver reads nothing at all.
    [[nodiscard]] std::size_t capacity() const;

   private:
    /// A number that is begun binds its block to the socket.
    [[nodiscard]] bool may_choose() const { return number_left_ == sizeof number_; }
    /// Sorts the sockets; whether any has little enough waiting.
    bool has_candidates();
    void measure();
    void share_out();
    /// The same of those that had too much. Where it is false they tell once they have room, as
    /// those do that were asked in vain.
    bool others_have_room();

    /// What is known of a socket, in bytes.
    struct SocketLane {
        std::size_t given = 0;   // since the last share_out(), and what was unsent then
        std::size_t unsent = 0;  // waits for its path, when last looked at
        std::size_t limit = 0;   // of unsent: in proportion to what its path carries
        [[nodiscard]] std::size_t gone() const { return given - std::min(unsent, given); }
        /// How long a block would wait there, compared with others.
        [[nodiscard]] double load() const {
            return static_cast<double>(unsent) / static_cast<double>(limit);
        }
    };

    Stripes stripes_;
    std::vector<SocketLane> lanes_;   // by socket
    std::vector<std::size_t> order_;  // of sockets, by load when this block was to begin
    std::size_t candidates_ = 1;      // the first of order_
    std::size_t asked_ = 0;           // of order_
    BlockNumber number_ = 0;
    std::size_t number_left_;
    std::size_t left_;
};

}  // namespace pccl::transport::tcp
