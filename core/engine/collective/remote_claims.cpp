#include "core/engine/collective/remote_claims.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include "core/storage/background_thread.hpp"

namespace forebay {
namespace {

/// For all of an opening's ranks to be let in.
constexpr std::chrono::seconds opening_limit{10};

tl::unexpected<Error> lost_connection() {
  return tl::unexpected(Error{ErrorKind::io, 0,
                              "rank 0, which keeps track of who holds which bytes in the "
                              "write-behind cache, cannot be reached any more"});
}

}  // namespace

Result<std::unique_ptr<RemoteClaims>> RemoteClaims::connect(const ClaimsDoor& door, int rank,
                                                            Bytes granule) {
  auto socket = knock(door, rank, opening_limit);
  if (!socket) return tl::unexpected(socket.error());
  const int flags = ::fcntl(socket->get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket->get(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
    return fail(errno, "set up a connection");
  }
  std::unique_ptr<RemoteClaims> made(new RemoteClaims(std::move(*socket), granule));
  auto receiving = try_background_thread([claims = made.get()] { claims->receive(); });
  if (!receiving) return tl::unexpected(receiving.error());
  made->receiving_ = std::move(*receiving);
  // The first word was the greeting's answer: another connection's flags are known with it.
  if (const auto reached = made->end(); !reached) return tl::unexpected(reached.error());
  return made;
}

RemoteClaims::RemoteClaims(Descriptor socket, Bytes granule)
    : Claims(granule), socket_(std::move(socket)), mine_(places, false) {}

RemoteClaims::~RemoteClaims() {
  (void)send({.kind = Kind::leave});
  // The other side closes when it has read that: then nothing is on its way any more.
  ::shutdown(socket_.get(), SHUT_WR);
  if (receiving_.joinable()) receiving_.join();
}

bool RemoteClaims::send(const ClaimsMessage& message) {
  const ClaimsMessageWire wire = encode_claims_message(message);
  const std::scoped_lock lock(sending_);
  for (std::span<const std::byte> rest(wire); !rest.empty();) {
    const ssize_t sent = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    rest = rest.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

Result<ClaimsMessage> RemoteClaims::call(ClaimsMessage message) {
  std::unique_lock lock(mutex_);
  if (lost_) return lost_connection();
  message.number = ++last_call_;
  const auto mine = calls_.emplace(message.number, std::nullopt).first;
  lock.unlock();
  const bool sent = send(message);
  lock.lock();
  if (sent) changed_.wait(lock, [&] { return lost_ || mine->second; });
  const auto reply = std::exchange(mine->second, std::nullopt);
  calls_.erase(mine);
  if (!reply) return lost_connection();
  return *reply;
}

/// Until the connection ends.
void RemoteClaims::receive() {
  ClaimsMessageWire wire;
  for (std::size_t got = 0;;) {
    const ssize_t more = ::recv(socket_.get(), wire.data() + got, wire.size() - got, 0);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    got += static_cast<std::size_t>(more);
    if (got < wire.size()) continue;
    got = 0;
    const auto message = decode_claims_message(wire);
    if (!message || !dispatch(*message)) break;
  }
  lose();
}

bool RemoteClaims::dispatch(const ClaimsMessage& message) {
  if (message.kind != Kind::reply && message.kind != Kind::question) return false;
  const std::scoped_lock lock(mutex_);
  // In the order in which they were sent, so the last are the newest.
  flags_ = message.flags;
  if (message.kind == Kind::question) {
    questions_.push_back(message);
  } else if (const auto call = calls_.find(message.number); call != calls_.end()) {
    call->second = message;
  }
  changed_.notify_all();
  return true;
}

/// Nothing comes any more, and nothing goes.
void RemoteClaims::lose() {
  ::shutdown(socket_.get(), SHUT_RDWR);
  const std::scoped_lock lock(mutex_);
  lost_ = true;
  changed_.notify_all();
}

bool RemoteClaims::is_mine(Extent extent) {
  const std::scoped_lock lock(mutex_);
  const auto [first, end] = granules_of(extent);
  for (std::int64_t at = first; at < end; ++at) {
    if (!mine_[place_of(at)]) return false;
  }
  return true;
}

void RemoteClaims::set_mine(Extent extent, bool mine) {
  const std::scoped_lock lock(mutex_);
  const auto [first, end] = granules_of(extent);
  for (std::int64_t at = first; at < end; ++at) {
    mine_[place_of(at)] = mine;
  }
}

Result<std::optional<Claims::Foreign>> RemoteClaims::foreign(Extent extent) {
  {
    const std::scoped_lock lock(mutex_);
    if (left_) return std::nullopt;
    if (lost_) return lost_connection();
  }
  if (is_mine(extent)) return std::nullopt;
  const auto reply = call({.kind = Kind::foreign, .extent = extent});
  if (!reply) return tl::unexpected(reply.error());
  if (!reply->yes) return std::nullopt;
  return Foreign{reply->rank, reply->extent};
}

Result<std::optional<Claims::Foreign>> RemoteClaims::claim(Extent extent) {
  {
    const std::scoped_lock lock(mutex_);
    if (lost_) return lost_connection();
  }
  const auto told = [&] {
    const std::scoped_lock lock(mutex_);
    return extent.end() <= told_end_;
  };
  if (told() && is_mine(extent)) return std::nullopt;
  const auto reply = call({.kind = Kind::claim, .extent = extent});
  if (!reply) return tl::unexpected(reply.error());
  if (reply->yes) return Foreign{reply->rank, reply->extent};
  set_mine(extent, true);
  const std::scoped_lock lock(mutex_);
  told_end_ = std::max(told_end_, extent.end());
  return std::nullopt;
}

void RemoteClaims::release(Extent extent) {
  set_mine(extent, false);
  (void)call({.kind = Kind::release, .extent = extent});
}

void RemoteClaims::release_all() {
  {
    const std::scoped_lock lock(mutex_);
    mine_.assign(places, false);
    told_end_ = 0;
    if (left_) return;
  }
  (void)call({.kind = Kind::release_all});
}

Claims::Answer RemoteClaims::ask(int rank, const Question& question) {
  const auto reply =
      call({.kind = Kind::ask, .rank = rank, .wish = question.wish, .extent = question.extent});
  if (!reply) return {.status = tl::unexpected(reply.error())};
  Answer answer{.status = {}, .epoch = reply->epoch, .was_dirty = reply->yes};
  if (reply->error != ErrorKind::none) {
    answer.status = tl::unexpected(
        Error{reply->error, reply->os_errno,
              "rank " + std::to_string(rank) +
                  ", whose log holds it, is gone or could not bring it from its log to the file"});
  }
  return answer;
}

Result<std::optional<int>> RemoteClaims::next_open(int from) {
  {
    const std::scoped_lock lock(mutex_);
    if (left_) return std::nullopt;
  }
  const auto reply = call({.kind = Kind::next_open, .rank = from});
  if (!reply) return tl::unexpected(reply.error());
  if (!reply->yes) return std::nullopt;
  return reply->rank;
}

void RemoteClaims::open(std::int64_t /*process*/) { (void)call({.kind = Kind::open}); }

void RemoteClaims::answer(const Answering& answering) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return lost_ || closing_ || !questions_.empty(); });
    if (!questions_.empty()) {
      const ClaimsMessage question = questions_.front();
      questions_.pop_front();
      lock.unlock();
      const Answer answer = answering({question.wish, question.extent});
      (void)send({.kind = Kind::answer,
                  .yes = answer.was_dirty,
                  .number = question.number,
                  .rank = question.rank,
                  .epoch = answer.epoch,
                  .error = answer.status ? ErrorKind::none : answer.status.error().kind,
                  .os_errno = answer.status ? 0 : answer.status.error().os_errno});
      lock.lock();
      continue;
    }
    if (!closing_ && !lost_) continue;
    lock.unlock();
    (void)call({.kind = Kind::close});
    return;
  }
}

void RemoteClaims::close() {
  const std::scoped_lock lock(mutex_);
  closing_ = true;
  changed_.notify_all();
}

void RemoteClaims::leave() {
  {
    const std::scoped_lock lock(mutex_);
    left_ = true;
  }
  (void)send({.kind = Kind::leave});
}

Result<Bytes> RemoteClaims::end() {
  {
    const std::scoped_lock lock(mutex_);
    if (left_) return 0;
  }
  const auto reply = call({.kind = Kind::end});
  if (!reply) return tl::unexpected(reply.error());
  return reply->extent.length;
}

void RemoteClaims::set_end(Bytes end) {
  {
    const std::scoped_lock lock(mutex_);
    told_end_ = end;
    if (left_) return;
  }
  (void)call({.kind = Kind::set_end, .extent = {0, end}});
}

void RemoteClaims::set_flag(std::uint32_t flag) {
  (void)call({.kind = Kind::set_flag, .flags = flag});
}

void RemoteClaims::clear_flag(std::uint32_t flag) {
  (void)call({.kind = Kind::clear_flag, .flags = flag});
}

std::uint32_t RemoteClaims::count_conflict() {
  const auto reply = call({.kind = Kind::count_conflict});
  return reply ? reply->count : 0;
}

}  // namespace forebay
