#include "core/engine/collective/claims_server.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <optional>
#include <utility>

#include "core/engine/collective/sign_of_life.hpp"
#include "core/storage/background_thread.hpp"

namespace forebay {
namespace {

/// Connections that have not said yet whose they are, beyond those that are expected.
constexpr std::size_t most_strangers = 64;
/// So many may lie among the program's own descriptors.
constexpr std::size_t few_connections = 64;
/// How long a rank's own process may be gone before it is noticed.
constexpr std::chrono::nanoseconds bell_patience = std::chrono::seconds(1);

struct RetiredServers {
  std::mutex mutex;
  std::vector<std::unique_ptr<ClaimsServer>> servers;
};

RetiredServers& retired() {
  // Never destroyed: its threads may be at work when the process ends.
  static RetiredServers& instance = *new RetiredServers;
  return instance;
}

/// The same socket, numbered beyond the soft limit of the process: those numbers the program does
/// not use, and does not look at. The limit is for new numbers alone, so it is raised for this one.
/// Where that cannot be, `socket` itself.
Descriptor out_of_the_way(Descriptor socket) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return socket;
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &raised) != 0) return socket;
  Descriptor high(::fcntl(socket.get(), F_DUPFD_CLOEXEC, static_cast<int>(limit.rlim_cur)));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return high.valid() ? std::move(high) : std::move(socket);
}

bool same_token(const ClaimsToken& one, const ClaimsToken& other) {
  // In the same time, wherever they differ.
  std::byte difference{};
  for (std::size_t i = 0; i < one.size(); ++i) difference |= one[i] ^ other[i];
  return difference == std::byte{};
}

}  // namespace

struct ClaimsServer::Connection {
  Descriptor socket;
  int rank = -1;  ///< None yet.
  SharedClaims* claims = nullptr;
  std::optional<std::uint64_t> asking;  ///< Number of the call that waits for an answer.
  bool left = false;                    ///< It has said so.
  ClaimsMessageWire in{};
  std::size_t in_bytes = 0;
  std::vector<std::byte> out;
  bool waits_to_write = false;
};

Result<std::unique_ptr<ClaimsServer>> ClaimsServer::start(std::shared_ptr<SharedRegion> memory,
                                                          int ranks, Bytes granule,
                                                          const std::vector<int>& remote) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return fail(errno, "look at the limits");
  // Half of what the process may have is the program's; what it could have beyond is not.
  if (remote.size() > limit.rlim_cur / 2 + (limit.rlim_max - limit.rlim_cur)) {
    return tl::unexpected(
        Error{ErrorKind::unsupported, 0,
              fmt::format("{} ranks on other hosts are too many for rank 0, which may have {} "
                          "descriptors (ulimit -Hn)",
                          remote.size(), limit.rlim_max)});
  }
  auto listener = listen_for_claims();
  if (!listener) return tl::unexpected(listener.error());
  std::unique_ptr<ClaimsServer> server(
      new ClaimsServer(std::move(memory), ranks, granule, remote, std::move(*listener)));
  if (auto set = server->set_up(); !set) return tl::unexpected(set.error());
  return server;
}

ClaimsServer::ClaimsServer(std::shared_ptr<SharedRegion> memory, int ranks, Bytes granule,
                           const std::vector<int>& remote, ClaimsListener listener)
    : memory_(std::move(memory)),
      ranks_(ranks),
      granule_(granule),
      door_(listener.door),
      table_(memory_->bytes(), ranks, 0, granule),
      listener_(std::move(listener.socket)),
      many_(remote.size() > few_connections),
      expected_(remote.size()) {
  table_.relay_life().prepare();
  for (const int rank : remote) {
    auto claims = std::make_unique<SharedClaims>(memory_->bytes(), ranks_, rank, granule_);
    claims->relay();
    claims_.emplace(rank, std::move(claims));
  }
}

Status ClaimsServer::set_up() {
  waker_ = Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  poll_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  if (!waker_.valid() || !poll_.valid() || !watch(waker_.get(), EPOLLIN, &waker_) ||
      !watch(listener_.get(), EPOLLIN, &listener_)) {
    return fail(errno, "set up a server of claims");
  }
  auto serving = try_background_thread([this] { serve(); });
  if (!serving) return tl::unexpected(serving.error());
  serving_ = std::move(*serving);
  auto ringing = try_background_thread([this] { await_bells(); });
  if (!ringing) return tl::unexpected(ringing.error());
  ringing_ = std::move(*ringing);
  return {};
}

ClaimsServer::~ClaimsServer() {
  end();
  if (serving_.joinable()) serving_.join();
  if (ringing_.joinable()) ringing_.join();
}

/// The thread that serves looks for what there is to do.
void ClaimsServer::wake() {
  constexpr std::uint64_t one = 1;
  (void)::write(waker_.get(), &one, sizeof one);
}

/// Both threads end soon.
void ClaimsServer::end() {
  ending_ = true;
  wake();
  table_.relay_bell().ring();
}

void ClaimsServer::retire(std::unique_ptr<ClaimsServer> server) {
  server->retired_ = true;
  server->wake();
  const std::scoped_lock lock(retired().mutex);
  auto& servers = retired().servers;
  std::erase_if(servers, [](const auto& one_of_them) { return one_of_them->served_.load(); });
  servers.push_back(std::move(server));
}

void ClaimsServer::await_retired() {
  const std::scoped_lock lock(retired().mutex);
  for (auto& server : retired().servers) server->serving_.join();
  retired().servers.clear();
}

/// What ranks of this host ring wakes the thread that serves.
void ClaimsServer::await_bells() {
  Bell& bell = table_.relay_bell();
  while (!ending_) {
    const std::uint32_t seen = bell.rings.load();
    wake();
    if (ending_) break;
    bell.wait(seen, bell_patience);
  }
}

bool ClaimsServer::watch(int descriptor, std::uint32_t events, void* who, bool change) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = who;
  return ::epoll_ctl(poll_.get(), change ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event) == 0;
}

bool ClaimsServer::done() const {
  return ending_ || (retired_ && expected_ == 0 && connections_.empty());
}

void ClaimsServer::serve() {
  table_.relay_life().hold();
  std::array<epoll_event, 64> events{};
  while (!done()) {
    const int found = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), -1);
    if (found < 0 && errno != EINTR) break;
    for (int i = 0; i < found; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.ptr == &waker_) {
        std::uint64_t rings = 0;
        (void)::read(waker_.get(), &rings, sizeof rings);
        pass_on();
      } else if (event.data.ptr == &listener_) {
        let_in();
      } else if (const auto it = connections_.find(static_cast<Connection*>(event.data.ptr));
                 it != connections_.end()) {
        Connection& connection = *it->second;
        bool alive = true;
        if ((event.events & EPOLLOUT) != 0) alive = write_to(connection);
        if (alive && (event.events & ~EPOLLOUT) != 0) alive = read_from(connection);
        look_after(connection, alive);
      }
    }
    // Nobody else is to come: whoever has not said yet who he is, goes.
    if (expected_ == 0 && connections_.size() > by_rank_.size()) {
      std::erase_if(connections_, [](const auto& one) { return one.second->rank < 0; });
    }
  }
  // A rank that still waits for something hears that nothing comes.
  while (!connections_.empty()) remove(*connections_.begin()->second);
  table_.relay_life().let_go();
  served_ = true;
  end();
}

void ClaimsServer::let_in() {
  while (listener_.valid()) {
    Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) return;
    if (connections_.size() - by_rank_.size() >= expected_ + most_strangers) continue;
    tune_connection(socket.get());
    if (many_) socket = out_of_the_way(std::move(socket));
    auto connection = std::make_unique<Connection>();
    connection->socket = std::move(socket);
    if (!watch(connection->socket.get(), EPOLLIN, connection.get())) continue;
    Connection* const key = connection.get();
    connections_.emplace(key, std::move(connection));
  }
}

/// False: it is broken, or ended.
bool ClaimsServer::read_from(Connection& connection) {
  for (;;) {
    const ssize_t got = ::recv(connection.socket.get(), connection.in.data() + connection.in_bytes,
                               connection.in.size() - connection.in_bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) return false;
    connection.in_bytes += static_cast<std::size_t>(got);
    if (connection.in_bytes < connection.in.size()) continue;
    connection.in_bytes = 0;
    const auto message = decode_claims_message(connection.in);
    if (!message || !handle(connection, *message)) return false;
  }
}

bool ClaimsServer::write_to(Connection& connection) {
  std::size_t done = 0;
  bool alive = true;
  while (done < connection.out.size()) {
    const ssize_t sent = ::send(connection.socket.get(), connection.out.data() + done,
                                connection.out.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) {
      alive = sent < 0 && errno == EAGAIN;
      break;
    }
    done += static_cast<std::size_t>(sent);
  }
  connection.out.erase(connection.out.begin(),
                       connection.out.begin() + static_cast<std::ptrdiff_t>(done));
  return alive;
}

void ClaimsServer::send(Connection& connection, ClaimsMessage message) {
  message.flags = table_.flags();
  const auto wire = encode_claims_message(message);
  connection.out.insert(connection.out.end(), wire.begin(), wire.end());
}

bool ClaimsServer::greet(Connection& connection, const ClaimsMessage& message) {
  const auto claims = claims_.find(message.rank);
  if (message.kind != Kind::greeting || !same_token(message.token, door_.token) ||
      claims == claims_.end() || expected_ == 0 || by_rank_.contains(message.rank)) {
    return false;
  }
  connection.rank = message.rank;
  connection.claims = claims->second.get();
  by_rank_.emplace(message.rank, &connection);
  if (--expected_ == 0) listener_ = Descriptor();
  send(connection, {.kind = Kind::reply});
  return true;
}

/// What a rank says. False: it makes no sense, or the rank is done.
bool ClaimsServer::handle(Connection& connection, const ClaimsMessage& message) {
  if (connection.claims == nullptr) return greet(connection, message);
  SharedClaims& claims = *connection.claims;
  ClaimsMessage reply{.kind = Kind::reply, .number = message.number};
  const auto tell = [&](const Result<std::optional<Claims::Foreign>>& foreign) {
    reply.yes = foreign->has_value();
    if (!reply.yes) return;
    reply.rank = (*foreign)->rank;
    reply.extent = (*foreign)->extent;
  };
  switch (message.kind) {
    case Kind::foreign:
      tell(claims.foreign(message.extent));
      break;
    case Kind::claim:
      tell(claims.claim(message.extent));
      break;
    case Kind::release:
      claims.release(message.extent);
      break;
    case Kind::release_all:
      claims.release_all();
      break;
    case Kind::ask:
      if (message.rank >= ranks_ || connection.asking) return false;
      if (claims.begin_asking(message.rank, {message.wish, message.extent})) {
        connection.asking = message.number;
        tell_answer(connection);  // If who is asked is gone.
        return true;
      }
      break;  // Nobody answers there: so says an empty reply.
    case Kind::next_open: {
      const auto next = claims.next_open(message.rank);
      reply.yes = next->has_value();
      reply.rank = next->value_or(0);
      break;
    }
    case Kind::open:
      claims.open(::getpid());  // While this process lives, its connection tells of the rank.
      break;
    case Kind::close:
      claims.shut();
      break;
    case Kind::end:
      reply.extent = {0, *claims.end()};
      break;
    case Kind::set_end:
      claims.set_end(message.extent.length);
      break;
    case Kind::set_flag:
      claims.set_flag(message.flags);
      break;
    case Kind::clear_flag:
      claims.clear_flag(message.flags);
      break;
    case Kind::count_conflict:
      reply.count = claims.count_conflict();
      break;
    case Kind::answer: {
      if (message.rank >= ranks_) return false;
      Claims::Answer answer{.status = {}, .epoch = message.epoch, .was_dirty = message.yes};
      if (message.error != ErrorKind::none) {
        answer.status = tl::unexpected(Error{message.error, message.os_errno, {}});
      }
      claims.reply(message.rank, static_cast<std::uint32_t>(message.number), answer);
      return true;
    }
    case Kind::leave:
      connection.left = true;
      claims.shut();
      return false;
    case Kind::greeting:
    case Kind::reply:
    case Kind::question:
      return false;
  }
  send(connection, reply);
  return true;
}

/// Questions to ranks that are served here, and answers to theirs.
void ClaimsServer::pass_on() {
  while (const auto asked = table_.take_relayed()) {
    const auto owner = by_rank_.find(asked->owner);
    // If it is not there any more, who asked finds that out.
    if (owner == by_rank_.end()) continue;
    Connection& connection = *owner->second;
    send(connection, {.kind = Kind::question,
                      .number = asked->number,
                      .rank = asked->asker,
                      .wish = asked->question.wish,
                      .extent = asked->question.extent});
  }
  std::vector<Connection*> touched;
  for (const auto& [rank, connection] : by_rank_) {
    tell_answer(*connection);
    if (!connection->out.empty()) touched.push_back(connection);
  }
  for (Connection* const connection : touched) look_after(*connection, true);
}

/// What it asked for, once it is there.
void ClaimsServer::tell_answer(Connection& connection) {
  if (!connection.asking) return;
  const std::uint64_t number = *connection.asking;
  const auto answer = connection.claims->look_for_answer();
  if (!answer) return;
  connection.asking.reset();
  ClaimsMessage reply{
      .kind = Kind::reply, .yes = answer->was_dirty, .number = number, .epoch = answer->epoch};
  if (!answer->status) {
    reply.error = answer->status.error().kind;
    reply.os_errno = answer->status.error().os_errno;
  }
  send(connection, reply);
}

/// After it was read or written: what is to be sent is, or waits for room.
void ClaimsServer::look_after(Connection& connection, bool alive) {
  if (alive && !connection.out.empty()) alive = write_to(connection);
  if (!alive) {
    remove(connection);
    return;
  }
  const bool waits = !connection.out.empty();
  if (waits == connection.waits_to_write) return;
  connection.waits_to_write = waits;
  (void)watch(connection.socket.get(), waits ? EPOLLIN | EPOLLOUT : EPOLLIN, &connection, true);
}

void ClaimsServer::remove(Connection& connection) {
  if (connection.rank >= 0) {
    by_rank_.erase(connection.rank);
    if (!connection.left) connection.claims->set_gone();
  }
  connections_.erase(&connection);
}

}  // namespace forebay
