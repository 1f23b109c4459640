#include "core/engine/collective/log_guard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "core/engine/collective/agreed_error.hpp"

namespace forebay {
namespace {

/// Beside those of data, which are numbers of aggregators. MPI grants tags up to 32767.
constexpr int block_tag = 32'000;
/// Where ranks share cores, who waits sleeps between looks, as the exchange does.
constexpr std::chrono::microseconds look_period{50};

}  // namespace

/// This rank's block on its way to those who keep a piece of its group, part by part, one under way
/// to each. A synchronous send is done when it is received: that is what holds the sender back.
class LogGuard::Sending {
 public:
  Sending(Exchange& exchange, std::vector<LogRun> runs, const std::vector<int>& holders)
      : exchange_(exchange), runs_(std::move(runs)) {
    for (const LogRun& run : runs_) length_ += run.length();
    for (const int holder : holders) errands_.push_back({.to = holder});
  }

  /// Goes on where it can. True: all is sent.
  bool advance() {
    bool done = true;
    for (Errand& errand : errands_) {
      if (errand.ticket && exchange_.done(*errand.ticket)) errand.ticket.reset();
      if (!errand.ticket && errand.sent < length_) send_part(errand);
      done = done && !errand.ticket && errand.sent == length_;
    }
    return done;
  }

  void finish() {
    while (!advance()) pause(exchange_);
  }

  /// Waits for a message, and goes on meanwhile.
  void wait(Exchange::Ticket ticket) {
    while (!exchange_.done(ticket)) {
      advance();
      pause(exchange_);
    }
  }

  const Status& status() const { return status_; }

 private:
  struct Errand {
    int to = 0;
    Bytes sent = 0;
    std::optional<Exchange::Ticket> ticket = {};
    std::vector<std::byte> buffer = {};
  };

  void send_part(Errand& errand) {
    const Bytes part = std::min(ParityWriter::part_bytes, length_ - errand.sent);
    auto bytes = read_runs(runs_, errand.sent, part, errand.buffer);
    if (!bytes) {
      // The others wait for it; that it is wrong is agreed on afterwards.
      status_ = tl::unexpected(bytes.error());
      errand.buffer.assign(static_cast<std::size_t>(part), std::byte{0});
      bytes = std::span<const std::byte>(errand.buffer);
    }
    errand.ticket = exchange_.send(errand.to, block_tag, *bytes);
    errand.sent += part;
  }

  static void pause(const Exchange& exchange) {
    if (exchange.cores_are_shared()) {
      std::this_thread::sleep_for(look_period);
    } else {
      std::this_thread::yield();
    }
  }

  Exchange& exchange_;
  const std::vector<LogRun> runs_;
  Bytes length_ = 0;
  std::vector<Errand> errands_;
  Status status_;
};

LogGuard::LogGuard(Exchange& exchange, std::vector<ProtectionGroup> groups, std::string name,
                   MakeLog make)
    : exchange_(exchange),
      groups_(std::move(groups)),
      name_(std::move(name)),
      make_(std::move(make)),
      progress_(groups_.size()) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    const auto& holders = groups_[group].holders;
    for (std::size_t piece = 0; piece < holders.size(); ++piece) {
      if (holders[piece] != exchange_.rank()) continue;
      kept_.push_back({.group = group, .piece = static_cast<int>(piece), .log = nullptr});
    }
  }
}

std::string LogGuard::group_name(std::size_t group) const {
  return fmt::format("{}-{}", name_, group);
}

/// The stripe of each group, as all ranks know it then.
std::vector<Stripe> LogGuard::gather(const LogWriter* log, const LogGrowth& growth) {
  std::vector<std::byte> word;
  if (log != nullptr) {
    Stripe mine{.group = name_};
    mine.members.push_back({.identity = log->identity(),
                            .ranges = ranges_of(growth.runs),
                            .last_sequence = growth.end.data_sequence,
                            .flushed = growth.flushed});
    word = encode_stripe(mine);
  }
  const auto words = exchange_.all_gather_varying(word);
  std::vector<Stripe> stripes;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    Stripe stripe{.group = group_name(group),
                  .generation = generation_,
                  .parities = static_cast<int>(groups_[group].holders.size())};
    for (const int rank : groups_[group].members) {
      const auto& theirs = words[static_cast<std::size_t>(rank)];
      auto parsed = theirs.empty() ? Result<Stripe>(Stripe{}) : parse_stripe(theirs);
      if (!parsed) continue;  // Only an exchange that changes bytes does that.
      for (StripeMember& member : parsed->members) stripe.members.push_back(std::move(member));
    }
    stripes.push_back(std::move(stripe));
  }
  return stripes;
}

/// It has bytes, or says more of what is flushed.
bool LogGuard::worth_it(std::size_t group, const Stripe& stripe) const {
  const auto& known = progress_[group].flushed;
  return std::ranges::any_of(stripe.members, [&](const StripeMember& member) {
    const auto flushed = known.find(member.identity.log);
    return member.length() > 0 || member.flushed > (flushed == known.end() ? 0 : flushed->second);
  });
}

Status LogGuard::step(LogWriter* log, bool durable) {
  if (broken_.kind != ErrorKind::none) return tl::unexpected(broken_);
  ++generation_;
  LogGrowth growth;
  if (log != nullptr) growth = log->grown(safe_);
  // What an earlier stripe said may be gone with it.
  growth.flushed = told_ = std::max(told_, growth.flushed);
  const Bytes length = growth.length();
  const std::vector<Stripe> stripes = gather(log, growth);
  std::vector<int> holders;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (std::ranges::find(groups_[group].members, exchange_.rank()) !=
        groups_[group].members.end()) {
      holders = groups_[group].holders;
    }
  }
  Sending sending(exchange_, std::move(growth.runs), holders);
  Status status;
  for (Kept& kept : kept_) {
    if (worth_it(kept.group, stripes[kept.group])) {
      auto added = keep(kept, stripes[kept.group], sending);
      if (!added) status = added;
    }
    // Also what earlier steps left in memory.
    if (status && durable && kept.log != nullptr) status = kept.log->sync();
  }
  sending.finish();
  sent_ += length * static_cast<Bytes>(holders.size());
  if (status) status = sending.status();
  status = worst_of_all(exchange_, status ? Error{} : status.error());
  if (!status) {
    broken_ = status.error();
    return status;
  }
  safe_ = growth.end;
  if (length > 0) lengths_[generation_] = length;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (!worth_it(group, stripes[group])) continue;
    for (const StripeMember& member : stripes[group].members) {
      progress_[group].until[generation_][member.identity.log] = member.last_sequence;
      progress_[group].flushed[member.identity.log] = member.flushed;
    }
  }
  // What cannot be given back takes storage, and protects nothing less.
  (void)release(log);
  return {};
}

/// Adds a stripe to a parity log. Whatever fails, all that was sent to this rank is received.
Status LogGuard::keep(Kept& kept, Stripe stripe, Sending& sending) {
  stripe.piece = kept.piece;
  const std::vector<StripeMember> members = stripe.members;
  std::vector<int> ranks;  // By member.
  ranks.reserve(members.size());
  for (const StripeMember& member : members) ranks.push_back(member.identity.rank);
  std::vector<Bytes> received(members.size(), 0);
  const auto receive = [&](std::size_t member, Bytes length, std::vector<std::byte>& buffer) {
    buffer.resize(static_cast<std::size_t>(length));
    sending.wait(exchange_.receive(ranks[member], block_tag, buffer));
    received[member] += length;
  };
  Status status;
  if (kept.log == nullptr) {
    if (auto made = make_(stripe.group, kept.piece)) {
      kept.log = std::move(*made);
    } else {
      status = tl::unexpected(made.error());
    }
  }
  const Bytes length = stripe.length();
  if (status) {
    status =
        kept.log->append(std::move(stripe),
                         [&](std::size_t member, Bytes, Bytes part,
                             std::vector<std::byte>& buffer) -> Result<std::span<const std::byte>> {
                           receive(member, part, buffer);
                           return std::span<const std::byte>(buffer);
                         });
  }
  std::vector<std::byte> rest;
  for (Bytes offset = 0; offset < length; offset += ParityWriter::part_bytes) {
    for (std::size_t member = 0; member < members.size(); ++member) {
      const Bytes part = std::min(ParityWriter::part_bytes, members[member].length() - offset);
      if (part > 0 && received[member] <= offset) receive(member, part, rest);
    }
  }
  return status;
}

/// Lets go of generations of which all logs of the group have everything in the file.
Status LogGuard::release(LogWriter* log) {
  Status status;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    Progress& progress = progress_[group];
    std::uint64_t done = 0;
    std::uint64_t mine = 0;
    while (!progress.until.empty()) {
      const auto first = progress.until.begin();
      const bool flushed = std::ranges::all_of(first->second, [&](const auto& member) {
        return progress.flushed.at(member.first) >= member.second;
      });
      if (!flushed) break;
      done = first->first;
      if (log != nullptr) {
        const auto own = first->second.find(log->identity().log);
        if (own != first->second.end()) mine = own->second;
      }
      progress.until.erase(first);
    }
    if (done == 0) continue;
    for (Kept& kept : kept_) {
      if (kept.group != group || kept.log == nullptr) continue;
      if (auto released = kept.log->release(done); !released) status = released;
    }
    if (mine == 0) continue;
    lengths_.erase(lengths_.begin(), lengths_.upper_bound(done));
    if (auto released = log->release(mine); !released) status = released;
  }
  return status;
}

Bytes LogGuard::length_of(const LogWriter& log) const {
  return std::accumulate(lengths_.begin(), lengths_.end(), log.length_since(safe_),
                         [](Bytes sum, const auto& generation) { return sum + generation.second; });
}

Status LogGuard::remove() {
  Status status;
  for (Kept& kept : kept_) {
    if (kept.log == nullptr) continue;
    auto destroyed = kept.log->destroy();
    if (destroyed) kept.log.reset();
    if (!destroyed) status = destroyed;
  }
  return status;
}

}  // namespace forebay
