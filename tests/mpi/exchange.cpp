// Goal: the exchange over MPI does what core/engine/collective/exchange.hpp says, so that what was
// tested with its in-process twin holds in a job. Method: each call by all ranks, with results that
// every rank can compute; gathers on both sides of the limit of one MPI call. Prints nothing but
// errors.
#include <mpi.h>
#include <sched.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "core/engine/collective/mpi_exchange.hpp"

namespace forebay {
namespace {

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      std::fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, world_rank, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                             \
    }                                                                                           \
  } while (0)

int world_rank = 0;

std::shared_ptr<Exchange> make(int ranks_per_node, Bytes most_gathered = INT_MAX) {
  MPI_Comm own = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &own);
  return make_mpi_exchange(own, ranks_per_node, most_gathered);
}

std::vector<std::byte> bytes_of(int rank) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(rank) * 1000);  // Rank 0 has none.
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 7 + 31 * rank);
  return bytes;
}

void nodes() {
  const auto real = make(0);
  CHECK(real->nodes().nodes() == 1);
  CHECK(real->ranks_on_host() == real->size());
  for (const int host : real->host_of_rank()) CHECK(host == 0);
  const auto pairs = make(2);
  CHECK(pairs->nodes().nodes() == (pairs->size() + 1) / 2);
  CHECK(pairs->ranks_on_host() == pairs->size());
  for (int rank = 0; rank < pairs->size(); ++rank) {
    CHECK(pairs->nodes().node_of_rank[static_cast<std::size_t>(rank)] == rank / 2);
  }
}

void reductions(Exchange& exchange) {
  const std::int64_t n = exchange.size();
  std::array<std::int64_t, 2> values{exchange.rank(), -exchange.rank()};
  exchange.all_reduce(values, Reduce::max);
  CHECK(values[0] == n - 1 && values[1] == 0);
  values = {exchange.rank() + 1, std::int64_t{1} << 40};
  exchange.all_reduce(values, Reduce::sum);
  CHECK(values[0] == n * (n + 1) / 2 && values[1] == n << 40);
  CHECK(exchange.exclusive_sum(10) == 10 * exchange.rank());
}

void gathers() {
  const auto ranks = make(0)->size();
  // All at once, each rank's at once, and in parts.
  for (const Bytes most_gathered : {Bytes{INT_MAX}, Bytes{1000} * ranks, Bytes{333}}) {
    const auto exchange = make(0, most_gathered);
    const auto all = exchange->all_gather_varying(bytes_of(exchange->rank()));
    CHECK(static_cast<int>(all.size()) == ranks);
    for (int r = 0; r < ranks; ++r) CHECK(all[static_cast<std::size_t>(r)] == bytes_of(r));
  }
}

void shared_memory() {
  const auto exchange = make(2);
  auto region = exchange->share(4096);
  CHECK(region.has_value());
  const auto bytes = (*region)->bytes();
  CHECK(bytes.size() == 4096);
  const auto local = static_cast<std::size_t>(exchange->rank() % 2);
  CHECK(bytes[local] == std::byte{0});
  exchange->barrier();
  bytes[local] = std::byte(exchange->rank() + 1);
  exchange->barrier();
  const int first = exchange->rank() / 2 * 2;
  for (int mate = first; mate < first + 2 && mate < exchange->size(); ++mate) {
    CHECK(bytes[static_cast<std::size_t>(mate - first)] == std::byte(mate + 1));
  }
}

/// A message to the next rank and one from the rank before; the buffer may be larger than it.
void messages(Exchange& exchange) {
  const int ranks = exchange.size();
  const int before = (exchange.rank() + ranks - 1) % ranks;
  const auto outgoing = bytes_of(exchange.rank() + 1);
  std::vector<std::byte> incoming(1000 * static_cast<std::size_t>(ranks + 1));
  const auto receiving = exchange.receive(before, 5, incoming);
  const auto sending = exchange.send((exchange.rank() + 1) % ranks, 5, outgoing);
  Bytes received = -1;
  while (!exchange.done(receiving, &received)) {
  }
  while (!exchange.done(sending)) {
  }
  incoming.resize(static_cast<std::size_t>(received));
  CHECK(incoming == bytes_of(before + 1));
}

/// A message of the program that its sender has begun arrives while the sender waits for others in
/// a collective call, as MPI demands: whoever it is for may come only then.
void progress(Exchange& exchange) {
  std::vector<std::byte> message(std::size_t{8} << 20, std::byte(exchange.rank() + 1));
  const auto length = static_cast<int>(message.size());
  const bool sends = exchange.rank() % 2 == 0;
  const int other = exchange.rank() + (sends ? 1 : -1);
  if (other == exchange.size()) {
    exchange.barrier();
    return;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  if (sends) {
    MPI_Isend(message.data(), length, MPI_BYTE, other, 1, MPI_COMM_WORLD, &request);
  } else {
    MPI_Recv(message.data(), length, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(message.back() == std::byte(other + 1));
  }
  exchange.barrier();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/// Ranks that are held to one core share it, however many the host has; a single one does not. And
/// they agree on things by other means.
void cores() {
  cpu_set_t before, one;
  CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
  const auto sharing = make(0);
  CHECK(sharing->cores_are_shared());
  reductions(*sharing);
  gathers();
  progress(*sharing);
  messages(*sharing);
  MPI_Comm alone = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &alone);
  CHECK(!make_mpi_exchange(alone, 0)->cores_are_shared());
  CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
}

void run() {
  nodes();
  cores();
  const auto exchange = make(0);
  CHECK(exchange->rank() == world_rank);
  reductions(*exchange);
  gathers();
  shared_memory();
  messages(*exchange);
  progress(*exchange);
}

}  // namespace
}  // namespace forebay

int main() {
  MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(MPI_COMM_WORLD, &forebay::world_rank);
  forebay::run();
  MPI_Finalize();
}
