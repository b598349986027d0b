// SPDX-License-Identifier: Apache-2.0
#include "csrc/netconf/ssh_stream.h"

#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::netconf {
namespace {

class SshStream final : public ByteStream {
   public:
    SshStream(sys::NameLookup lookup, sys::SshArgs args)
        : lookup_(std::move(lookup)), args_(std::move(args)) {}

    Result<bool> connect_step() override {
        if (ssh_ == nullptr) {
            const auto connected = connect_socket();
            if (!connected.is_ok()) return blame(connected.status());
            if (!*connected) return false;
            auto ssh = sys::SshChannel::start(std::move(socket_), args_);
            if (!ssh.is_ok()) return blame(ssh.status());
            ssh_ = std::move(ssh).value();
        }
        auto ready = ssh_->connect_step();
        return ready.is_ok() ? ready : blame(ready.status());
    }

    Result<std::size_t> write_some(std::string_view bytes) override {
        auto taken = ssh_->write_some(bytes);
        return taken.is_ok() ? taken : blame(taken.status());
    }

    Result<std::size_t> read_some(std::span<char> into) override {
        auto got = ssh_->read_some(into);
        return got.is_ok() ? got : blame(got.status());
    }

    [[nodiscard]] sys::Interest interest() const override {
        if (ssh_ == nullptr) return {.fd = socket_.get(), .output = true};
        return {.fd = ssh_->fd(), .input = true, .output = ssh_->wants_output()};
    }

    [[nodiscard]] std::string awaited() const override {
        if (lookup_.poll()) return {};
        return concat("the name service, for the address of ", lookup_.host());
    }

   private:
    Result<bool> connect_socket() {
        const auto found = lookup_.poll();
        if (!found) return false;
        PCCL_ASSIGN_OR_RETURN(const sys::Addresses addresses, *found);
        if (!socket_.is_open()) {
            PCCL_ASSIGN_OR_RETURN(socket_, sys::make_socket(addresses.front()));
        }
        return sys::connect_step(socket_.get(), addresses.front());
    }

    [[nodiscard]] Status blame(const Status& fault) const { return fault.with_context(args_.host); }

    const sys::NameLookup lookup_;
    const sys::SshArgs args_;
    UniqueFd socket_;  // until the SSH channel takes it
    std::unique_ptr<sys::SshChannel> ssh_;
};

}  // namespace

std::unique_ptr<ByteStream> make_ssh_stream(sys::NameLookup lookup, sys::SshArgs args) {
    return std::make_unique<SshStream>(std::move(lookup), std::move(args));
}

}  // namespace pccl::netconf
