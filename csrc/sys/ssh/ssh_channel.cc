// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/ssh/ssh_channel.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "csrc/base/scope_exit.h"
#include "csrc/base/text/printable.h"
#include "csrc/base/text/text.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/private_file.h"
#include "csrc/sys/ssh/libssh.h"

namespace pccl::sys {
namespace {

constexpr std::string_view kFingerprintStart = "SHA256:";
constexpr std::size_t kFingerprintDigits = 43;  // of 32 bytes in base 64, without padding

class LibsshChannel final : public SshChannel {
   public:
    LibsshChannel(const libssh::LibsshFunctions& call, UniqueFd socket, SshArgs args)
        : call_(call), socket_(std::move(socket)), args_(std::move(args)), session_(call.create()) {
        const int fd = socket_.get();
        const int no = 0;
        call_.set_option(session_, libssh::kOptionHost, args_.host.c_str());
        call_.set_option(session_, libssh::kOptionUser, args_.user.c_str());
        call_.set_option(session_, libssh::kOptionFd, &fd);
        call_.set_option(session_, libssh::kOptionProcessConfig, &no);
        call_.set_blocking(session_, 0);
    }
    LibsshChannel(const LibsshChannel&) = delete;
    LibsshChannel& operator=(const LibsshChannel&) = delete;
    ~LibsshChannel() override {
        if (channel_ != nullptr) call_.destroy_channel(channel_);
        if (key_ != nullptr) call_.free_key(key_);
        // libssh closes the socket that it connected with.
        if (has_taken_socket_) socket_.release();
        call_.destroy(session_);
    }

    Result<bool> connect_step() override {
        ChannelState before = state_;
        do {
            before = state_;
            PCCL_TRY(step());
        } while (state_ != before);
        return state_ == ChannelState::kReady;
    }

    Result<std::size_t> write_some(std::string_view bytes) override {
        constexpr std::size_t kAtOnce = 32768;
        const auto size = static_cast<std::uint32_t>(std::min(bytes.size(), kAtOnce));
        const int taken = call_.write(channel_, bytes.data(), size);
        if (taken == libssh::kAgain) return std::size_t{0};
        if (taken < 0) return lost();
        if (call_.flush(session_, 0) == -1) return lost();
        return static_cast<std::size_t>(taken);
    }

    Result<std::size_t> read_some(std::span<char> into) override {
        const auto size = static_cast<std::uint32_t>(into.size());
        const int got = call_.read(channel_, into.data(), size, 0);
        if (got > 0) return static_cast<std::size_t>(got);
        if (got == libssh::kEof || call_.is_eof(channel_) != 0)
            return Status::peer_lost(kNoRank, "it closed the connection");
        if (got < 0 && got != libssh::kAgain) return lost();
        return std::size_t{0};
    }

    [[nodiscard]] int fd() const override { return socket_.get(); }
    [[nodiscard]] bool wants_output() const override {
        return has_taken_socket_ && (call_.poll_flags(session_) & libssh::kWritePending) != 0;
    }
    [[nodiscard]] const std::string& host_key() const override { return host_key_; }

   private:
    enum class ChannelState {
        kKeyExchange,
        kHostKey,
        kAuthentication,
        kOpening,
        kSubsystem,
        kReady
    };

    Status step() {
        switch (state_) {
            case ChannelState::kKeyExchange:
                has_taken_socket_ = true;
                return move_on(call_.connect(session_), ChannelState::kHostKey);
            case ChannelState::kHostKey:
                return check_host();
            case ChannelState::kAuthentication:
                return authenticate();
            case ChannelState::kOpening:
                return move_on(call_.open_channel(channel_), ChannelState::kSubsystem);
            case ChannelState::kSubsystem:
                return start_subsystem();
            case ChannelState::kReady:
                break;
        }
        return Status::ok();
    }

    Status move_on(int outcome, ChannelState next) {
        if (outcome == libssh::kAgain) return Status::ok();
        if (outcome != libssh::kOk) return lost();
        state_ = next;
        return Status::ok();
    }

    Status check_host() {
        PCCL_ASSIGN_OR_RETURN(host_key_, read_host_key());
        if (!args_.accepts_any_host_key && host_key_ != args_.host_key)
            return {StatusCode::kMismatch,
                    concat("its host key is ", host_key_, ", not ", args_.host_key,
                           ", which is pinned: it is another host, or has a new key")};
        PCCL_TRY(load_key());
        state_ = ChannelState::kAuthentication;
        return Status::ok();
    }

    Status load_key() {
        const std::string what = concat("the private key ", args_.key_file);
        const UniqueFd file = open_to_read(args_.key_file);
        if (!file.is_open())
            return Status::invalid_argument(
                Status::from_errno(errno, concat(what, " cannot be read")).message());
        PCCL_TRY(check_private(file.get(), what, {.of_own = 0077, .of_root = 0037}));
        // The path refers to the file that was checked, even if its name now refers to another.
        const std::string path = concat("/proc/self/fd/", file.get());
        if (call_.read_key_file(path.c_str(), "", nullptr, nullptr, &key_) != libssh::kOk)
            return Status::invalid_argument(
                concat(what, " cannot be used: it is none, or has a passphrase"));
        return Status::ok();
    }

    [[nodiscard]] Result<std::string> read_host_key() const {
        libssh::Key key = nullptr;
        if (call_.server_key(session_, &key) != libssh::kOk) return lost();
        const ScopeExit free_key([&] { call_.free_key(key); });
        unsigned char* hash = nullptr;
        std::size_t bytes = 0;
        if (call_.hash_of_key(key, libssh::kHashSha256, &hash, &bytes) != 0) return lost();
        const ScopeExit free_hash([&] { call_.free_hash(&hash); });
        char* const text = call_.fingerprint(libssh::kHashSha256, hash, bytes);
        if (text == nullptr) return lost();
        const ScopeExit free_text([&] { call_.free_text(text); });
        return std::string(text);
    }

    Status authenticate() {
        const int outcome = call_.authenticate(session_, nullptr, key_);
        if (outcome == libssh::kAuthAgain) return Status::ok();
        if (outcome == libssh::kAuthDenied || outcome == libssh::kAuthPartial)
            return Status::invalid_argument(
                concat("it refuses user ", args_.user, " with the key ", args_.key_file));
        if (outcome != libssh::kOk) return lost();
        channel_ = call_.create_channel(session_);
        if (channel_ == nullptr) return lost();
        state_ = ChannelState::kOpening;
        return Status::ok();
    }

    Status start_subsystem() {
        const int outcome = call_.request_subsystem(channel_, args_.subsystem.c_str());
        if (outcome != libssh::kOk && outcome != libssh::kAgain)
            return Status::unsupported(concat("it has no subsystem ", args_.subsystem));
        return move_on(outcome, ChannelState::kReady);
    }

    [[nodiscard]] Status lost() const {
        // libssh's message quotes the host.
        const std::string why = printable(call_.last_error(session_), 400);
        return Status::peer_lost(kNoRank, concat("SSH failed: ", why.empty() ? "no reason" : why));
    }

    const libssh::LibsshFunctions& call_;
    UniqueFd socket_;
    const SshArgs args_;
    libssh::Session const session_;
    libssh::Channel channel_ = nullptr;
    libssh::Key key_ = nullptr;
    ChannelState state_ = ChannelState::kKeyExchange;
    bool has_taken_socket_ = false;
    std::string host_key_;
};

}  // namespace

bool is_fingerprint(std::string_view text) {
    if (!text.starts_with(kFingerprintStart)) return false;
    text.remove_prefix(kFingerprintStart.size());
    return text.size() == kFingerprintDigits && std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '+' || c == '/';
           });
}

Result<std::unique_ptr<SshChannel>> SshChannel::start(UniqueFd socket, SshArgs args) {
    const libssh::LibsshFunctions* const call = libssh::functions();
    if (call == nullptr)
        return Status::unsupported(
            "libssh.so.4 is not installed, which NETCONF needs: apt-get install libssh-4");
    return std::unique_ptr<SshChannel>(
        std::make_unique<LibsshChannel>(*call, std::move(socket), std::move(args)));
}

}  // namespace pccl::sys
