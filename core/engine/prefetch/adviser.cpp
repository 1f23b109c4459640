#include "core/engine/prefetch/adviser.hpp"

#include <utility>

#include "core/engine/cache/background_thread.hpp"

namespace forebay {

AdvisedFile::AdvisedFile(Adviser& adviser, std::string path, std::unique_ptr<FetchSource> source,
                         BlockAdvice advice)
    : adviser_(adviser),
      path_(std::move(path)),
      source_(std::move(source)),
      advice_(std::move(advice)) {}

void AdvisedFile::note(Extent read) {
  {
    const std::lock_guard lock(mutex_);
    ++figures_.reads;
    figures_.bytes_asked += read.length;
  }
  const std::lock_guard lock(adviser_.mutex_);
  if (adviser_.stopping_) return;
  if (adviser_.notes_.size() == Adviser::most_notes) adviser_.notes_.pop_front();
  adviser_.notes_.push_back({shared_from_this(), read});
  adviser_.noted_.notify_one();
}

PrefetchFigures AdvisedFile::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

Adviser::Adviser() : thread_(background_thread([this] { work(); })) {}

Adviser::~Adviser() { end(); }

std::shared_ptr<AdvisedFile> Adviser::add(std::string path, std::unique_ptr<FetchSource> source,
                                          BlockAdvice advice) {
  auto file =
      std::make_shared<AdvisedFile>(*this, std::move(path), std::move(source), std::move(advice));
  const std::lock_guard lock(mutex_);
  std::erase_if(files_, [](const auto& known) { return known.expired(); });
  files_.push_back(file);
  return file;
}

void Adviser::end() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    notes_.clear();
    noted_.notify_one();
  }
  if (!thread_.joinable()) return;
  thread_.join();
  for (const auto& known : files_) {
    if (const auto file = known.lock()) file->source_.reset();
  }
}

void Adviser::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    noted_.wait(lock, [this] { return stopping_ || !notes_.empty(); });
    if (stopping_) return;
    const Note note = std::move(notes_.front());
    notes_.pop_front();
    lock.unlock();
    advise(*note.file, note.read);
    lock.lock();
  }
}

void Adviser::advise(AdvisedFile& file, Extent read) {
  for (const auto& [extent, is_needed] : file.advice_.observe(read)) {
    const bool is_taken = file.source_->advise(extent, is_needed).has_value();
    const std::lock_guard lock(file.mutex_);
    if (!is_needed) continue;
    ++file.figures_.requests;
    if (is_taken) {
      file.figures_.bytes_fetched += extent.length;
    } else {
      ++file.figures_.requests_failed;
    }
  }
}

}  // namespace forebay
