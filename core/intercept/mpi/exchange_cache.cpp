#include "core/intercept/mpi/exchange_cache.hpp"

#include <atomic>
#include <climits>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/engine/collective/lone_exchange.hpp"
#include "core/engine/collective/mpi_exchange.hpp"
#include "core/intercept/mpi/settings.hpp"

namespace forebay {
namespace {

/// Communicators that a process may have of ours when one more is made.
constexpr std::int64_t most_communicators = 128;
/// The same for one that waits for another file when its own is closed.
constexpr std::int64_t most_kept = 32;

/// Those that there are.
std::atomic<std::int64_t> communicators{0};

/// The exchanges over one communicator that no file uses. Files are opened and closed in the same
/// order on all ranks, so the last one is the same on all.
struct Idle {
  std::vector<std::shared_ptr<Exchange>> exchanges;
  bool environment_declares = false;  ///< As each of them found when it was made.
};
using Home = std::shared_ptr<Idle>;

int forget(MPI_Comm comm, int /*keyval*/, void* home, void* /*extra*/) {
  // The world goes when MPI is finalized: too late to free anything, and no need to.
  if (comm == MPI_COMM_WORLD) return MPI_SUCCESS;
  delete static_cast<Home*>(home);
  return MPI_SUCCESS;
}

int keyval() {
  static const int value = [] {
    int created = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &created, nullptr);
    return created;
  }();
  return value;
}

Home home_at(MPI_Comm comm) {
  void* found = nullptr;
  int is_there = 0;
  PMPI_Comm_get_attr(comm, keyval(), static_cast<void*>(&found), &is_there);
  if (is_there != 0) return *static_cast<Home*>(found);
  auto made = std::make_unique<Home>(std::make_shared<Idle>());
  if (PMPI_Comm_set_attr(comm, keyval(), made.get()) != MPI_SUCCESS) return nullptr;
  return *made.release();
}

/// `exchange`, which goes home when its file has no use for it any more.
std::shared_ptr<Exchange> lend(std::shared_ptr<Exchange> exchange, const Home& home) {
  Exchange* const lent = exchange.get();
  return {lent, [owner = std::move(exchange), home = std::weak_ptr(home)](Exchange*) mutable {
            if (const Home idle = home.lock()) idle->exchanges.push_back(std::move(owner));
          }};
}

/// Null if the MPI cannot give another communicator. `environment_declares` comes back true if the
/// environment of some rank declares hints.
std::shared_ptr<Exchange> make_exchange(MPI_Comm comm, bool& environment_declares) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  MPI_Comm own = MPI_COMM_NULL;
  // A split and not a duplicate, which would run the program's attribute copy functions.
  PMPI_Comm_split(comm, 0, rank, &own);
  if (own == MPI_COMM_NULL) return nullptr;
  std::int64_t declares = settings().declares() ? 1 : 0;
  auto exchange = make_mpi_exchange(own, settings().ranks_per_node, INT_MAX, &declares);
  environment_declares = declares != 0;
  ++communicators;
  Exchange* const counted = exchange.get();
  return {counted, [owner = std::move(exchange)](Exchange*) mutable {
            owner.reset();
            --communicators;
          }};
}

}  // namespace

bool threads_call_at_once() {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

Opening begin_opening(MPI_Comm comm) {
  using Clock = std::chrono::steady_clock;
  int is_inter = 0;
  if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS ||
      is_inter != 0) {
    return {};
  }
  int size = 0;
  PMPI_Comm_size(comm, &size);
  if (size == 1) {
    return {.exchange = make_lone_exchange(),
            .environment_declares = settings().declares(),
            .begun = Clock::now()};
  }
  const Home home = threads_call_at_once() ? nullptr : home_at(comm);
  if (home != nullptr && !home->exchanges.empty()) {
    auto waiting = std::move(home->exchanges.back());
    home->exchanges.pop_back();
    return {.exchange = lend(std::move(waiting), home),
            .environment_declares = home->environment_declares,
            .begun = Clock::now()};
  }
  // The ranks meet here, and agree on what the one with the most communicators can bear.
  std::int64_t most = communicators;
  PMPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, comm);
  const auto begun = Clock::now();
  if (most >= most_communicators) {
    return {.exchange = make_lone_exchange(), .crowded = true, .begun = begun};
  }
  bool environment_declares = false;
  auto made = make_exchange(comm, environment_declares);
  if (made != nullptr && home != nullptr) {
    home->environment_declares = environment_declares;
    if (most < most_kept) made = lend(std::move(made), home);
  }
  return {
      .exchange = std::move(made), .environment_declares = environment_declares, .begun = begun};
}

}  // namespace forebay
