#include "core/engine/prefetch/prefetcher.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <new>
#include <utility>

#include "core/engine/prefetch/fetch_buffer.hpp"
#include "core/engine/prefetch/prefetched_file.hpp"
#include "core/engine/prefetch/steady_time.hpp"

namespace forebay {
namespace {

constexpr Bytes fewest_blocks = 4;
/// For want of memory none gets smaller than this: requests of less do not pay.
constexpr Bytes smallest_block = 64 * KiB;

}  // namespace

Prefetcher::Prefetcher(std::unique_ptr<ReadQueue> queue, Bytes memory,
                       std::function<void()> prepare)
    : memory_(std::make_shared<Resource>("prefetch.memory", memory)),
      shared_memory_(std::make_shared<Resource>("prefetch.shared_memory", memory)),
      queue_(std::move(queue)),
      thread_([this, prepare = std::move(prepare)] {
        if (prepare != nullptr) prepare();
        try {
          work();
          if (!queue_broke_.load()) let_go();
        } catch (const std::bad_alloc&) {
          stop_all("no memory");  // The queue is sound: end() waits for what is under way.
        }
      }) {}

Prefetcher::~Prefetcher() { end(""); }

bool Prefetcher::end(const char* why) {
  {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    for (const auto& member : members_) member->file->stop(why);
  }
  stopping_.store(true);
  if (!thread_.is_held()) return true;
  bool is_woken = true;
  {
    const std::lock_guard lock(queue_mutex_);
    if (queue_ != nullptr) is_woken = queue_->wake();
  }
  if (!is_woken) {
    thread_.leave();
    return false;
  }
  if (thread_.join_within(LeavableThread::longest_end)) let_go();  // Where the thread could not.
  return true;
}

/// Waits for the kernel, which writes into what under_way_ keeps, and for a file server, which
/// hears that its files are closed: so the thread does it, for which nobody waits for long.
void Prefetcher::let_go() {
  std::unique_ptr<ReadQueue> queue;
  {
    const std::lock_guard lock(queue_mutex_);
    queue = std::move(queue_);
  }
  const bool is_over = queue == nullptr || queue->drain();
  queue.reset();
  if (!is_over) keep_what_is_under_way();
  under_way_.clear();
  std::vector<std::shared_ptr<Member>> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(members_);
  }
  for (const auto& member : all) member->file->close_source();
}

/// The memory is the harder of the two limits: blocks get smaller until enough of them fit.
Prefetcher::Share Prefetcher::share_of(const ReadIntent& intent, Bytes most) {
  const Bytes wished =
      round_up(std::min(intent.block.value_or(usual_block), GiB), direct_alignment);
  const Bytes budget =
      std::min(intent.budget.value_or(std::max(usual_budget, fewest_blocks * wished)), most);
  const Bytes block =
      std::clamp(round_down(budget / fewest_blocks, direct_alignment), direct_alignment, wished);
  return {round_down(budget, block), block};
}

Bytes Prefetcher::most_for_one() const {
  const Bytes left = memory_->free();
  return 2 * left < memory_->amount() ? left / 2 : left;
}

Result<std::shared_ptr<ServedFile>> Prefetcher::add(std::string path,
                                                    std::unique_ptr<FetchSource> source,
                                                    const ReadIntent& intent) {
  const Bytes least = std::min(share_of(intent, memory_->amount()).block, smallest_block);
  auto holder = ResourceHolder::join(memory_);
  if (!holder) return tl::unexpected(holder.error());
  Share share{};
  do {  // Others may take of it meanwhile.
    share = share_of(intent, most_for_one());
    if (share.block < least || share.bytes < fewest_blocks * share.block) {
      return tl::unexpected(
          Error{ErrorKind::no_memory, 0, "no memory is left to read " + path + " ahead"});
    }
  } while (!(*holder)->take(share.bytes));
  auto buffer = FetchBuffer::make(share.bytes);
  if (!buffer) return tl::unexpected(buffer.error());
  return join(std::make_shared<PrefetchedFile>(
                  std::move(path), std::move(source), intent, *std::move(buffer), share.block,
                  [this] { wake(); }, requests_),
              *std::move(holder));
}

Result<std::shared_ptr<ServedFile>> Prefetcher::add_shared(std::string path,
                                                           std::unique_ptr<FetchSource> source,
                                                           const ReadIntent& intent,
                                                           const FileVersion& version,
                                                           const SharedWindow::Before& before,
                                                           std::int64_t now_ns, int group) {
  const auto [bytes, block] = share_of(intent, shared_memory_->amount());
  auto holder = ResourceHolder::join(shared_memory_);
  if (!holder) return tl::unexpected(holder.error());
  if (bytes < fewest_blocks * block || !(*holder)->take(bytes)) {
    return tl::unexpected(
        Error{ErrorKind::no_memory, 0, "no memory is left to read " + path + " ahead"});
  }
  // Who limits how many blocks are ahead means its own.
  auto window =
      intent.ahead ? nullptr : SharedFile::window_for(version, intent, block, bytes, now_ns, group);
  if (window == nullptr) {
    return tl::unexpected(Error{ErrorKind::unsupported, 0, "no memory to share for " + path});
  }
  auto file = std::make_shared<SharedFile>(
      std::move(path), std::move(source), intent, std::move(window), version, block, before,
      [this] { wake(); }, requests_);
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(shared_, [](const auto& known) { return known.expired(); });
    shared_.push_back(file);
  }
  return join(std::move(file), *std::move(holder));
}

void Prefetcher::finish_shared() {
  constexpr std::chrono::milliseconds longest{200};
  const auto deadline = std::chrono::steady_clock::now() + longest;
  std::vector<std::weak_ptr<SharedFile>> shared;
  {
    const std::lock_guard lock(mutex_);
    shared = shared_;
  }
  for (const auto& known : shared) {
    if (const auto file = known.lock()) file->finish(deadline);
  }
}

Result<std::shared_ptr<ServedFile>> Prefetcher::join(std::shared_ptr<ServedFile> file,
                                                     std::unique_ptr<ResourceHolder> memory) {
  const std::lock_guard lock(mutex_);
  if (broken_) {
    return tl::unexpected(Error{ErrorKind::unsupported, 0, "nothing can be read ahead any more"});
  }
  members_.push_back(std::make_shared<Member>(Member{file, std::move(memory)}));
  return file;
}

void Prefetcher::release(const std::shared_ptr<ServedFile>& file) {
  file->stop("");
  const std::lock_guard lock(mutex_);
  std::erase_if(members_, [&](const auto& member) { return member->file == file; });
}

void Prefetcher::wake() {
  if (!idle_.exchange(false)) return;
  const std::lock_guard lock(queue_mutex_);
  if (queue_ != nullptr && !queue_->wake()) queue_broke_.store(true);
}

std::vector<std::shared_ptr<Prefetcher::Member>> Prefetcher::members() {
  const std::lock_guard lock(mutex_);
  return members_;
}

void Prefetcher::work() {
  ThreadCpu cpu;
  while (!stopping_.load()) {
    // Before looking: who makes room after the look finds it set, and wakes us.
    idle_.store(true);
    start_requests();
    const auto ended = queue_->wait();
    if (!ended) return give_up();
    for (const ReadOutcome& outcome : *ended) {
      const auto place = under_way_.find(outcome.tag);
      if (place == under_way_.end()) continue;
      const UnderWay request = std::move(place->second);
      under_way_.erase(place);
      request.member->file->ended({request.tag, outcome.moved, outcome.os_errno});
      request.member->file->count_cpu(cpu.take_ns());
    }
  }
  // let_go() waits for the rest; their memory is kept by under_way_ until then.
}

void Prefetcher::start_requests() {
  // One of each file in turn, so that none starves another.
  auto candidates = members();
  while (!candidates.empty()) {
    std::erase_if(candidates, [&](const auto& member) {
      if (static_cast<int>(under_way_.size()) >= queue_->depth()) return true;
      auto request = member->file->next_request();
      if (!request) return true;
      // The next store to what comes from the page cache sets the times of the file then.
      const Extent extent{request->offset, static_cast<Bytes>(request->into.size())};
      if (auto written = request->source->write_out(extent); !written) {
        member->file->ended({request->tag, 0, written.error().os_errno});
        member->file->stop("what was stored in it cannot be written out");
        return true;
      }
      const std::uint64_t tag = next_tag_++;
      const std::uint64_t own_tag = std::exchange(request->tag, tag);
      // Before it begins: what it is read into must be kept, whatever fails.
      under_way_.emplace(tag, UnderWay{member, own_tag});
      if (queue_->start(*request)) return false;
      under_way_.erase(tag);
      member->file->ended({own_tag, 0, EAGAIN});
      member->file->stop("the system carries out no more reads");
      return true;
    });
  }
}

void Prefetcher::stop_all(const char* why) {
  const std::lock_guard lock(mutex_);
  broken_ = true;
  for (const auto& member : members_) member->file->stop(why);
}

/// The queue is of no use any more.
void Prefetcher::give_up() {
  queue_broke_.store(true);  // Who learns that its file is not served finds it set.
  stop_all("the queue of reads broke");
  keep_what_is_under_way();
}

/// It may still write into its memory, which is therefore never given back.
void Prefetcher::keep_what_is_under_way() {
  for (auto& [tag, request] : under_way_) {
    static_cast<void>(new std::shared_ptr<Member>(std::move(request.member)));
  }
  under_way_.clear();
}

}  // namespace forebay
