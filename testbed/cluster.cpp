#include "testbed/cluster.hpp"

#include <algorithm>
#include <cassert>

namespace forebay::testbed {
namespace {

void drop_past(std::deque<Time>& answers, Time now) {
  while (!answers.empty() && answers.front() <= now) answers.pop_front();
}

}  // namespace

Cluster::Cluster(const ClusterParameters& parameters)
    : parameters_(parameters),
      servers_(static_cast<std::size_t>(parameters.servers), ServerQueue(parameters.server)),
      metadata_server_(parameters.server),
      counters_(servers_.size()),
      parts_(servers_.size()) {
  assert(parameters.servers >= 1 && parameters.stripe_size >= 1);
}

/// Fills `parts_` and calls per_stripe(stripe, part) for each stripe that `extent` touches.
template <typename PerStripe>
void Cluster::split(Extent extent, PerStripe&& per_stripe) {
  std::fill(parts_.begin(), parts_.end(), Part{});
  const Bytes size = parameters_.stripe_size;
  std::int64_t stripe = extent.offset / size;
  do {
    Part& part = parts_[static_cast<std::size_t>(server_of(stripe))];
    part.touched = true;
    part.bytes += intersect(extent, {stripe * size, size}).length;
    per_stripe(stripe, part);
    ++stripe;
  } while (stripe * size < extent.end());
}

Time Cluster::submit(Time now, int server, const Part& part) {
  ServerQueue& queue = servers_[static_cast<std::size_t>(server)];
  ServerCounters& counters = counters_[static_cast<std::size_t>(server)];
  const Time answer = queue.submit(now, part.bytes, part.lock_conflicts * parameters_.lock_cost);
  counters.lock_conflicts += part.lock_conflicts;
  counters.queue_max =
      std::max(counters.queue_max, static_cast<std::int64_t>(queue.unanswered(now)));
  return answer;
}

Time Cluster::read(Time now, FileId file, ClientId client, Extent extent) {
  split(extent, [](std::int64_t, Part&) {});
  Time answered = settled(now, file, client);
  for (int server = 0; server < parameters_.servers; ++server) {
    const Part& part = parts_[static_cast<std::size_t>(server)];
    if (!part.touched) continue;
    answered = std::max(answered, submit(now, server, part));
    counters_[static_cast<std::size_t>(server)].read_requests += 1;
    counters_[static_cast<std::size_t>(server)].read_bytes += part.bytes;
  }
  return answered;
}

Time Cluster::write(Time now, FileId file, ClientId client, Extent extent) {
  File& state = files_[file];
  split(extent, [&](std::int64_t stripe, Part& part) {
    const auto [lock, first] = state.last_writer.try_emplace(stripe, client);
    if (!first && lock->second != client) part.lock_conflicts += 1;
    lock->second = client;
  });

  auto& window = windows_[client];
  window.resize(servers_.size());
  const auto slots = static_cast<std::size_t>(parameters_.server.slots);
  Time& settled = state.settled[client];
  Time acknowledged = now;
  for (int server = 0; server < parameters_.servers; ++server) {
    const Part& part = parts_[static_cast<std::size_t>(server)];
    if (!part.touched) continue;
    auto& answers = window[static_cast<std::size_t>(server)];
    drop_past(answers, now);
    // After the acknowledgement at most `slots` remain, this one included. The wait is longer than
    // for the oldest alone only where several threads of the client wait at once.
    if (answers.size() >= slots) {
      acknowledged = std::max(acknowledged, answers[answers.size() - slots]);
    }
    answers.push_back(submit(now, server, part));
    settled = std::max(settled, answers.back());
    counters_[static_cast<std::size_t>(server)].write_requests += 1;
    counters_[static_cast<std::size_t>(server)].write_bytes += part.bytes;
  }
  return acknowledged;
}

Time Cluster::settled(Time now, FileId file, ClientId client) const {
  const auto state = files_.find(file);
  if (state == files_.end()) return now;
  const auto answer = state->second.settled.find(client);
  return answer == state->second.settled.end() ? now : std::max(now, answer->second);
}

Time Cluster::metadata(Time now) {
  if (parameters_.object_cost == Time{}) return now;
  return metadata_server_.submit(now, 0, parameters_.servers * parameters_.object_cost);
}

void Cluster::truncate(FileId file, Bytes size) {
  const auto state = files_.find(file);
  if (state == files_.end()) return;
  const std::int64_t kept = (size + parameters_.stripe_size - 1) / parameters_.stripe_size;
  std::erase_if(state->second.last_writer, [&](const auto& lock) { return lock.first >= kept; });
}

void Cluster::forget(Time now, FileId file) {
  files_.erase(file);
  // Clients come and go; those without outstanding writes leave nothing behind.
  std::erase_if(windows_, [&](const auto& window) {
    return std::all_of(window.second.begin(), window.second.end(), [&](const auto& answers) {
      return answers.empty() || answers.back() <= now;
    });
  });
}

std::vector<ServerCounters> Cluster::counters(Time now) const {
  std::vector<ServerCounters> result = counters_;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    result[i].busy = servers_[i].busy();
    result[i].queue = static_cast<std::int64_t>(servers_[i].unanswered(now));
  }
  return result;
}

}  // namespace forebay::testbed
