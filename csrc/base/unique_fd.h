// One owner for a file descriptor.
#pragma once

#include <utility>

#include "csrc/base/export.h"

namespace pccl {

class PCCL_API UniqueFd {
   public:
    UniqueFd() = default;
    explicit UniqueFd(int fd) : fd_(fd) {}
    UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
    UniqueFd& operator=(UniqueFd&& other) noexcept {
        if (this != &other) reset(other.release());
        return *this;
    }
    UniqueFd(const UniqueFd&) = delete;
    UniqueFd& operator=(const UniqueFd&) = delete;
    ~UniqueFd() { reset(); }

    [[nodiscard]] int get() const { return fd_; }
    [[nodiscard]] bool is_open() const { return fd_ >= 0; }
    /// Gives the descriptor away; the caller closes it.
    int release() { return std::exchange(fd_, -1); }
    /// Closes what is held and takes `fd`.
    void reset(int fd = -1);

   private:
    int fd_ = -1;
};

}  // namespace pccl
