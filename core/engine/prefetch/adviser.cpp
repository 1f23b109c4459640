#include "core/engine/prefetch/adviser.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <new>
#include <utility>

#include "core/engine/prefetch/steady_time.hpp"
#include "core/storage/bounded_lock.hpp"

namespace forebay {

AdvisedFile::AdvisedFile(Adviser& adviser, std::string path, std::unique_ptr<FetchSource> source,
                         std::unique_ptr<ReadAdvice> advice, std::unique_ptr<PageCacheFetch> fetch)
    : adviser_(adviser),
      path_(std::move(path)),
      declared_(advice->plan().declared()),
      source_(std::move(source)),
      advice_(std::move(advice)),
      fetch_(std::move(fetch)),
      extents_(advice_->plan().extents()) {
  const FetchPlan& plan = advice_->plan();
  figures_.bytes_planned = plan.bytes();
  figures_.extents_outside = static_cast<std::int64_t>(plan.outside());
  figures_.is_by_page_cache = true;
}

bool AdvisedFile::note(Extent read) {
  {
    const std::lock_guard lock(mutex_);
    ++figures_.reads;
    figures_.bytes_asked += read.length;
    figures_.bytes_asked_declared += declared_.overlap(read);
    if (!read.empty()) noted_ = read;
  }
  if (has_ended_.load()) return false;
  if (!read.empty()) adviser_.add_note({shared_from_this(), read});
  return true;
}

void AdvisedFile::count(const KernelReads& by_kernel) {
  const std::lock_guard lock(mutex_);
  if (!figures_.by_kernel) figures_.by_kernel.emplace();
  *figures_.by_kernel += by_kernel;
}

void AdvisedFile::watch(std::shared_ptr<ReadProgress> progress) {
  {
    const std::lock_guard lock(mutex_);
    figures_.has_unseen_reads = true;
    progress_.push_back(std::move(progress));
  }
  adviser_.look_soon();
}

void AdvisedFile::forget(const std::shared_ptr<ReadProgress>& progress) {
  const std::lock_guard lock(mutex_);
  std::erase(progress_, progress);
}

void AdvisedFile::closing(int descriptor) {
  bool has_ended = false;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& way : progress_) has_ended |= way->end(descriptor);
  }
  if (!has_ended) return;
  adviser_.look_soon();
}

bool AdvisedFile::foresees(Bytes offset) {
  const std::lock_guard lock(mutex_);
  if (!places_) places_.emplace(std::move(extents_));
  if (!noted_.empty()) {
    // What is read beyond an extent is not declared.
    reached_ = places_->of_last(noted_, reached_).value_or(reached_);
  }
  const auto place = places_->of(offset, reached_);
  return place && is_near(reached_, *place);
}

bool AdvisedFile::is_done() {
  const auto acting = lock_unless_stuck(acting_, adviser_.is_stuck_);
  return !acting.owns_lock() || source_ == nullptr || advice_->is_done();
}

std::vector<std::shared_ptr<ReadProgress>> AdvisedFile::ways() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

bool AdvisedFile::is_watched() const {
  const std::lock_guard lock(mutex_);
  return !progress_.empty();
}

void AdvisedFile::finish() {
  is_finishing_.store(true);
  const auto acting = lock_unless_stuck(acting_, adviser_.is_stuck_);
  if (!acting.owns_lock() || source_ == nullptr) return;
  carry_out(advice_->end());
  if (fetch_) fetch_->let_go_of_all(*source_);
  fetch_.reset();
  source_.reset();
  const std::lock_guard lock(mutex_);
  progress_.clear();
}

PrefetchFigures AdvisedFile::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

void AdvisedFile::count_cpu(std::int64_t nanoseconds) {
  const std::lock_guard lock(mutex_);
  figures_.helper_cpu_ns += nanoseconds;
}

/// `read`: empty at the beginning.
void AdvisedFile::act(Extent read) {
  const std::lock_guard acting(acting_);
  if (source_ == nullptr) return;
  agree();
  carry_out(read.empty() ? advice_->begin() : advice_->observe(read));
}

void AdvisedFile::agree() {
  const std::int64_t now_ns = steady_ns();
  advice_->tell_time(now_ns);
  if (fetch_) fetch_->agree(*advice_, now_ns);
}

/// Whether anything was read that was not noted.
bool AdvisedFile::look() {
  const std::lock_guard acting(acting_);
  if (source_ == nullptr) return false;
  bool found = false;
  for (const auto& way : ways()) {
    const bool has_ended = way->has_ended();
    const auto seen = way->look(advice_->expected());
    if (has_ended) forget(way);
    if (!seen) continue;
    found = true;
    agree();
    // It is about to read what comes soon and was not told yet.
    if (!advice_->foresaw(seen->read) && advice_->foresaw(seen->sought)) continue;
    carry_out(advice_->glimpse(seen->read));
  }
  // Who waited and has read all that it was told of is not seen any more.
  if (!found && fetch_) {
    agree();
    carry_out(advice_->go_on());
  }
  return found;
}

void AdvisedFile::carry_out(const std::vector<ReadAdvice::Item>& items) {
  for (auto item = items.begin(); item != items.end(); ++item) {
    const auto& [extent, is_needed, kind, declared] = *item;
    if (is_needed && is_finishing_.load()) continue;
    if (!is_needed && is_fetched()) {
      const auto last = std::find_if(item, items.end(), std::mem_fn(&ReadAdvice::Item::is_needed));
      let_go({item, last});
      item = std::prev(last);
      continue;
    }
    PageCacheFetch::Brought done;
    if (is_needed && is_fetched()) {
      done = fetch_->bring(*source_, extent, declared);
      // In company it may be there since others asked for it.
      const bool was_there = done.fetched == 0 && !fetch_->has_company();
      if (done.fetched + done.resident > 0) advice_->was_there(was_there);
    } else {
      const bool is_taken = source_->advise(extent, is_needed).has_value();
      if (!is_needed) continue;
      done = {extent, is_taken ? extent.length : 0, 0, 1, is_taken ? 0 : 1};
    }
    const Bytes before = std::min(done.fetched, fetched_.add(done.missing));
    const std::lock_guard lock(mutex_);
    figures_.requests += done.requests;
    figures_.requests_failed += done.failed;
    figures_.bytes_fetched += done.fetched;
    figures_.bytes_refetched += before;
    figures_.bytes_resident += done.resident;
  }
  has_ended_.store(fetch_ != nullptr && fetch_->lets_stay() && advice_->is_done());
  const std::lock_guard lock(mutex_);
  // What was there before is not ours.
  const Bytes held = std::min(advice_->held(), figures_.bytes_fetched);
  figures_.memory_peak = std::max(figures_.memory_peak, held);
  if (advice_->is_given_up()) figures_.plans_given_up = 1;
  if (is_fetched() && fetch_->is_useless()) {
    figures_.stopped = "its reads do not come from the page cache";
  } else if (is_fetched() && fetch_->is_all_there()) {
    figures_.stopped = "the page cache had it";
  }
}

/// Where the kernel's page cache has nothing of the file, the file system may have a memory of its
/// own that takes advice.
bool AdvisedFile::is_fetched() const {
  return fetch_ && !(fetch_->is_useless() && source_->advises_servers());
}

void AdvisedFile::let_go(std::span<const ReadAdvice::Item> items) {
  for (const auto& way : ways()) {
    for (const auto& item : items) way->let_go(item.extent);
  }
  fetch_->let_go(*source_, items);
}

Adviser::Adviser(std::function<void()> prepare)
    : thread_([this, prepare = std::move(prepare)] {
        if (prepare != nullptr) prepare();
        try {
          work();
        } catch (const std::bad_alloc&) {
          // The program reads as it would without advice.
          const std::lock_guard lock(mutex_);
          stopping_ = true;
          notes_.clear();
        }
      }) {}

Adviser::~Adviser() { end(); }

std::shared_ptr<AdvisedFile> Adviser::add(std::string path, std::unique_ptr<FetchSource> source,
                                          std::unique_ptr<ReadAdvice> advice,
                                          std::unique_ptr<PageCacheFetch> fetch) {
  auto file = std::make_shared<AdvisedFile>(*this, std::move(path), std::move(source),
                                            std::move(advice), std::move(fetch));
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(files_, [](const auto& known) { return known.expired(); });
    files_.push_back(file);
  }
  add_note({file, {}});
  return file;
}

void Adviser::end() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    notes_.clear();
    noted_.notify_one();
  }
  if (!thread_.is_held()) return;
  if (is_stuck_.load()) return thread_.leave();
  if (!thread_.join_within(LeavableThread::longest_end)) {
    is_stuck_.store(true);
    return;
  }
  for (const auto& known : files_) {
    if (const auto file = known.lock()) file->finish();
  }
}

void Adviser::add_note(Note note) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  if (notes_.size() == most_notes) notes_.pop_front();
  notes_.push_back(std::move(note));
  noted_.notify_one();
}

void Adviser::look_soon() {
  const std::lock_guard lock(mutex_);
  is_changed_ = true;
  noted_.notify_one();
}

std::vector<std::shared_ptr<AdvisedFile>> Adviser::watched() {
  std::vector<std::shared_ptr<AdvisedFile>> result;
  for (const auto& known : files_) {
    auto file = known.lock();
    if (file != nullptr && file->is_watched()) result.push_back(std::move(file));
  }
  return result;
}

void Adviser::work() {
  auto between_looks = shortest_look;
  ThreadCpu cpu;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto files = watched();
    const auto is_called = [this] { return stopping_ || is_changed_ || !notes_.empty(); };
    const bool called = files.empty() ? (noted_.wait(lock, is_called), true)
                                      : noted_.wait_for(lock, between_looks, is_called);
    if (stopping_) return;
    is_changed_ = false;
    const auto notes = std::exchange(notes_, {});
    lock.unlock();
    for (const Note& note : notes) {
      note.file->act(note.read);
      note.file->count_cpu(cpu.take_ns());
    }
    bool found = false;
    for (const auto& file : files) {
      found |= file->look();
      file->count_cpu(cpu.take_ns());
    }
    between_looks = found || called ? shortest_look : std::min(2 * between_looks, longest_look);
    lock.lock();
  }
}

}  // namespace forebay
