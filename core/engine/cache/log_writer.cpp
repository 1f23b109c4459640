#include "core/engine/cache/log_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <numeric>
#include <utility>

#include "core/engine/cache/crc32c.hpp"
#include "core/storage/piece_walk.hpp"

namespace forebay {
namespace {

/// At the end of a segment, for marks: a commit or a flush must not need another segment.
constexpr Bytes mark_reserve = 1 * KiB;
/// Payloads of one system call, about: small enough to be in a core's cache still when they are
/// copied after their checksums were computed, and large enough for large folios of a page cache.
constexpr Bytes batch_bytes = 512 * KiB;
constexpr Bytes smallest_segment = 16 * KiB;

constexpr std::array<std::byte, static_cast<std::size_t>(record_alignment)> zeros{};

/// A segment holds a few payloads at least.
LogSettings in_range(LogSettings settings) {
  settings.segment_bytes = std::max(settings.segment_bytes, smallest_segment);
  const Bytes room = settings.segment_bytes - superblock_bytes - mark_reserve;
  const Bytes most = std::min(largest_payload, room / 4 - record_bytes(0));
  settings.payload_bytes = std::clamp<Bytes>(settings.payload_bytes, 1, most);
  return settings;
}

/// Storage in memory is filled with zeros when it is got, before the program may go on.
Bytes first_segment(const LogSettings& settings) {
  constexpr Bytes usual = 4 * MiB;
  constexpr Bytes payloads = 8;
  // So many payloads, and not one less for want of room for what is written beside them.
  return std::max(usual,
                  payloads * record_bytes(static_cast<std::uint32_t>(settings.payload_bytes)) +
                      superblock_bytes + mark_reserve);
}

Bytes total_length(std::span<const LogRun> runs) {
  return std::accumulate(runs.begin(), runs.end(), Bytes{0},
                         [](Bytes sum, const LogRun& run) { return sum + run.length(); });
}

iovec piece_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

/// Walks along pieces.
class PieceCursor {
 public:
  explicit PieceCursor(std::span<const iovec> pieces) : pieces_(pieces) {}

  /// The next bytes that lie together, at most `most`. There must be some.
  iovec next(Bytes most) {
    while (pieces_.front().iov_len == done_) {
      pieces_ = pieces_.subspan(1);
      done_ = 0;
    }
    const iovec& piece = pieces_.front();
    const std::size_t length = std::min(piece.iov_len - done_, static_cast<std::size_t>(most));
    const iovec part{static_cast<std::byte*>(piece.iov_base) + done_, length};
    done_ += length;
    return part;
  }

 private:
  std::span<const iovec> pieces_;
  std::size_t done_ = 0;  ///< Bytes of the first one.
};

}  // namespace

Bytes LogGrowth::length() const { return total_length(runs); }

/// Data records that wait for a place in the log.
struct LogWriter::Batch {
  struct Entry {
    LogRecord record;
    std::size_t first_piece = 0;  ///< Of its payload, in `pieces`.
    std::size_t end_piece = 0;
  };
  std::vector<Entry> entries;
  std::vector<iovec> pieces;
  std::deque<std::vector<std::byte>> compressed;  ///< Payloads; some pieces are of them.
  Bytes length = 0;                               ///< Before compression.

  /// Adds a record of the next `record_length` bytes, which are there.
  void add(PieceCursor& cursor, Bytes offset, std::uint64_t epoch, Bytes record_length,
           AdaptiveCompressor& compressor) {
    Entry entry;
    entry.first_piece = pieces.size();
    for (Bytes left = record_length; left > 0;) {
      pieces.push_back(cursor.next(left));
      left -= static_cast<Bytes>(pieces.back().iov_len);
    }
    auto stored = static_cast<std::uint32_t>(record_length);
    auto codec = PayloadCodec::none;
    std::vector<std::byte> storage;
    const auto small = compressor.encode(std::span(pieces).subspan(entry.first_piece), storage);
    if (!small.empty()) {
      codec = PayloadCodec::lz4;
      stored = static_cast<std::uint32_t>(small.size());
      pieces.resize(entry.first_piece);
      pieces.push_back(piece_of(small));
      compressed.push_back(std::move(storage));  // What lies in it stays where it is.
    }
    std::uint32_t checksum = 0;
    for (const iovec& piece : std::span(pieces).subspan(entry.first_piece)) {
      checksum = crc32c({static_cast<const std::byte*>(piece.iov_base), piece.iov_len}, checksum);
    }
    entry.end_piece = pieces.size();
    entry.record = {.kind = RecordKind::data,
                    .epoch = epoch,
                    .value = static_cast<std::uint64_t>(offset),
                    .length = static_cast<std::uint32_t>(record_length),
                    .stored = stored,
                    .codec = codec,
                    .data_checksum = checksum};
    entries.push_back(entry);
    length += record_length;
  }
};

LogWriter::LogWriter(std::unique_ptr<LogStore> store, LogIdentity identity, LogSettings settings,
                     std::unique_ptr<ResourceHolder> capacity, Placed placed)
    : store_(std::move(store)),
      identity_(std::move(identity)),
      settings_(in_range(std::move(settings))),
      placed_(std::move(placed)),
      mark_(FlushMark::open(*store_)),
      pool_(*store_, {first_segment(settings_), settings_.segment_bytes}, settings_.ahead,
            std::move(capacity), settings_.reserve),
      compressor_(settings_.compress) {
  if (!mark_) broken_ = mark_.error();
}

bool LogWriter::fits(Bytes bytes, Bytes reserve) const {
  return !live_.empty() && position_ + bytes + reserve <= current_bytes();
}

/// Unlike that of any earlier use of the file: a header is right under one salt only, so whatever
/// is still in the file is no record.
std::uint32_t LogWriter::salt_for(const LogFile& file) const {
  if (file.earlier) return file.earlier->salt + 1;
  return crc32c(std::as_bytes(std::span(identity_.log)), static_cast<std::uint32_t>(next_segment_));
}

/// Starts the next segment.
Result<LogWriter::Room> LogWriter::roll() {
  auto taken = pool_.take();
  if (!taken) {
    // On a device that others fill, what this log has is its capacity.
    const bool device_full =
        taken.error().kind == ErrorKind::no_space || taken.error().kind == ErrorKind::quota;
    if (device_full && !live_.empty()) return Room::none;
    return tl::unexpected(taken.error());
  }
  std::optional<SegmentPool::Blank> blank = std::move(*taken);
  if (!blank) return Room::none;
  Superblock superblock{.identity = identity_,
                        .segment = next_segment_,
                        .first_sequence = sequence_ + 1,
                        .segment_bytes = blank->bytes,
                        .salt = salt_for(blank->file)};
  std::string name = segment_name(next_segment_);
  // The superblock is there before the name is: a segment's superblock is never half written.
  const auto block = encode_superblock(superblock);
  Status status =
      block ? blank->file.storage->write_at(*block, 0) : Status(tl::unexpected(block.error()));
  if (status) status = store_->rename(blank->name, name);
  if (!status) {
    broken_ = status.error();
    // Its removal may fail as well; the log is removed as a whole in the end.
    (void)pool_.give_back(blank->name, blank->bytes, std::nullopt);
    return tl::unexpected(broken_);
  }
  live_.push_back({std::make_shared<LogSegment>(std::move(blank->file), std::move(superblock)),
                   std::move(name)});
  ++next_segment_;
  position_ = superblock_bytes;
  bytes_ += superblock_bytes;
  return Room::made;
}

Status LogWriter::write_current(std::span<const iovec> pieces, Bytes length) {
  auto written = live_.back().segment->write(pieces, length, position_);
  if (!written) {
    broken_ = written.error();
    return written;
  }
  // Not before: a file that ends in this segment needs no next one.
  const Bytes late = current_bytes() / 4 * 3;
  if (position_ < late && position_ + length >= late) pool_.prepare();
  position_ += length;
  live_.back().end = position_;
  bytes_ += length;
  return {};
}

LogWriter::Outcome LogWriter::append(std::span<const iovec> pieces, Bytes offset,
                                     std::uint64_t epoch) {
  const Bytes total = total_bytes(pieces);
  PieceCursor cursor(pieces);
  Outcome outcome;
  while (outcome.logged < total) {
    Batch batch;
    while (batch.length < batch_bytes && outcome.logged + batch.length < total) {
      const Bytes at = offset + outcome.logged + batch.length;
      const Bytes to_cut = settings_.payload_bytes - at % settings_.payload_bytes;
      batch.add(cursor, at, epoch, std::min(to_cut, total - outcome.logged - batch.length),
                compressor_);
    }
    Outcome part = append_batch(batch);
    outcome.logged += part.logged;
    if (part.full || !part.status) {
      outcome.full = part.full;
      outcome.status = std::move(part.status);
      break;
    }
  }
  return outcome;
}

LogWriter::Outcome LogWriter::append_batch(const Batch& batch) {
  const std::scoped_lock lock(mutex_);
  Outcome outcome;
  std::vector<RecordHeader> headers(batch.entries.size());
  std::vector<iovec> io;
  for (std::size_t next = 0; next < batch.entries.size();) {
    if (is_broken()) {
      outcome.status = tl::unexpected(broken_);
      return outcome;
    }
    if (!fits(record_bytes(batch.entries[next].record.stored), mark_reserve)) {
      const auto room = roll();
      if (!room) outcome.status = tl::unexpected(room.error());
      if (!room || *room == Room::none) {
        outcome.full = room.has_value();
        return outcome;
      }
    }
    Live& current = live_.back();
    const std::size_t first = next;
    Bytes length = 0;
    io.clear();
    while (next < batch.entries.size()) {
      const Batch::Entry& entry = batch.entries[next];
      const Bytes whole = record_bytes(entry.record.stored);
      if (!fits(length + whole, mark_reserve)) break;
      LogRecord record = entry.record;
      record.sequence = sequence_ + 1 + (next - first);
      headers[next] = encode_record(record, current.segment->superblock().salt);
      io.push_back(piece_of(headers[next]));
      io.insert(io.end(), batch.pieces.begin() + static_cast<std::ptrdiff_t>(entry.first_piece),
                batch.pieces.begin() + static_cast<std::ptrdiff_t>(entry.end_piece));
      const auto padding = static_cast<std::size_t>(record_padding(record.stored));
      if (padding > 0) io.push_back(piece_of(std::span(zeros).first(padding)));
      length += whole;
      ++next;
    }
    Bytes at = position_;
    const auto begin = std::chrono::steady_clock::now();
    if (auto written = write_current(io, length); !written) {
      // Some may be whole, and would be replayed: they count as held until the log is gone.
      current.last_data = sequence_ + (next - first);
      outcome.status = std::move(written);
      return outcome;
    }
    compressor_.passed(length, std::chrono::steady_clock::now() - begin);
    for (std::size_t i = first; i < next; ++i) {
      LogRecord record = batch.entries[i].record;
      record.sequence = ++sequence_;
      placed_(record, LogPlace::of(record, current.segment, at + record_header_bytes));
      at += record_bytes(record.stored);
      outcome.logged += record.length;
      payload_bytes_ += record.length;
    }
    current.last_data = data_sequence_ = sequence_;
  }
  return outcome;
}

Result<std::uint64_t> LogWriter::append_mark(LogRecord record) {
  if (is_broken()) return tl::unexpected(broken_);
  if (!fits(record_header_bytes, 0)) {
    const auto room = roll();
    if (!room) return tl::unexpected(room.error());
    if (*room == Room::none) {
      return tl::unexpected(Error{ErrorKind::no_space, 0,
                                  "the capacity of the cache is exhausted at " + store_->path()});
    }
  }
  record.sequence = sequence_ + 1;
  const RecordHeader header = encode_record(record, live_.back().segment->superblock().salt);
  const iovec piece = piece_of(header);
  if (auto written = write_current({&piece, 1}, record_header_bytes); !written) {
    return tl::unexpected(written.error());
  }
  return ++sequence_;
}

Result<std::uint64_t> LogWriter::commit(std::uint64_t epoch) {
  const std::scoped_lock lock(mutex_);
  if (live_.empty()) return sequence_;
  return append_mark({.kind = RecordKind::commit, .epoch = epoch});
}

Status LogWriter::flushed(std::uint64_t epoch, std::uint64_t sequence) {
  const std::scoped_lock lock(mutex_);
  if (sequence <= flushed_ || live_.empty()) return {};
  if (is_broken()) return tl::unexpected(broken_);
  const bool all =
      std::ranges::all_of(live_, [&](const Live& live) { return live.last_data <= sequence; });
  // Where the last segment has little room left it goes too, and the log is empty.
  const bool worn =
      !fits(record_bytes(static_cast<std::uint32_t>(settings_.payload_bytes)), mark_reserve) ||
      position_ > current_bytes() / 2;
  // What is not marked would be replayed: it counts as held until the log is gone.
  if (auto marked = mark_->put(sequence); !marked) {
    broken_ = marked.error();
    return marked;
  }
  flushed_ = sequence;
  if (!(all && worn)) {
    // It says nothing that the mark does not, so it is left out where the log has no room for it.
    (void)append_mark({.kind = RecordKind::flushed, .epoch = epoch, .value = sequence});
  }
  return give_back(all && worn);
}

Status LogWriter::release(std::uint64_t sequence) {
  const std::scoped_lock lock(mutex_);
  released_ = std::max(released_, sequence);
  return give_back(false);
}

bool LogWriter::needed(const Live& live) const {
  return live.last_data > flushed_ || (live.held && live.last_data > released_);
}

/// Gives segments back that nobody needs; the last one, which is appended to, only if `last_too`.
Status LogWriter::give_back(bool last_too) {
  Status status;
  for (auto live = live_.begin(); live != live_.end();) {
    const bool last = std::next(live) == live_.end();
    if (needed(*live) || (last && !last_too)) {
      ++live;
      continue;
    }
    Live unneeded = std::move(*live);
    live = live_.erase(live);
    if (auto given = give_back(std::move(unneeded)); !given) status = given;
  }
  return status;
}

Status LogWriter::give_back(Live live) {
  const Bytes bytes = live.segment->superblock().segment_bytes;
  std::optional<LogFile> file;
  if (live.segment.use_count() == 1) file = live.segment->release(live.end);
  live.segment.reset();
  return pool_.give_back(live.name, bytes, std::move(file));
}

LogPoint LogWriter::end() const {
  if (live_.empty()) return {next_segment_, superblock_bytes, sequence_, data_sequence_};
  return {live_.back().segment->superblock().segment, live_.back().end, sequence_, data_sequence_};
}

std::vector<LogRun> LogWriter::runs_since(const LogPoint& since) const {
  std::vector<LogRun> runs;
  for (const Live& live : live_) {
    const std::uint64_t number = live.segment->superblock().segment;
    if (number < since.segment || live.last_data <= flushed_) continue;
    const LogRun run{live.segment, number == since.segment ? since.position : superblock_bytes,
                     live.end};
    if (run.length() > 0) runs.push_back(run);
  }
  return runs;
}

LogGrowth LogWriter::grown(const LogPoint& since) {
  const std::scoped_lock lock(mutex_);
  LogGrowth growth{.end = end(), .runs = runs_since(since), .flushed = flushed_};
  // Marks among what is left out count with it, or they would be missed.
  const auto dirty =
      std::ranges::find_if(live_, [this](const Live& live) { return live.last_data > flushed_; });
  const std::uint64_t clean =
      dirty == live_.end() ? sequence_ : dirty->segment->superblock().first_sequence - 1;
  growth.flushed = std::max(growth.flushed, clean);
  for (Live& live : live_) {
    live.held = live.held || std::ranges::any_of(growth.runs, [&](const LogRun& run) {
                  return run.segment == live.segment;
                });
  }
  return growth;
}

Bytes LogWriter::length_since(const LogPoint& since) const {
  const std::scoped_lock lock(mutex_);
  return total_length(runs_since(since));
}

Status LogWriter::sync() {
  std::vector<std::shared_ptr<LogSegment>> segments;
  {
    const std::scoped_lock lock(mutex_);
    if (is_broken()) return tl::unexpected(broken_);
    for (const Live& live : live_) segments.push_back(live.segment);
  }
  Status synced;
  for (const auto& segment : segments) {
    if (synced) synced = segment->storage().sync();
  }
  if (synced) synced = store_->sync();
  if (synced) return synced;
  // The kernel tells once that it has lost bytes: the next sync would succeed without them.
  const std::scoped_lock lock(mutex_);
  if (!is_broken()) broken_ = synced.error();
  return synced;
}

Status LogWriter::destroy() {
  const std::scoped_lock lock(mutex_);
  flushed_ = sequence_;  // Nothing of it is replayed any more.
  for (Live& live : live_) {
    // Those behind one that somebody still reads would leave a gap, if we were killed now.
    if (live.segment.use_count() > 1) break;
    const Bytes bytes = live.segment->superblock().segment_bytes;
    pool_.keep({live.name, bytes, live.segment->release(live.end)});
  }
  // A log that does not say what is flushed must not come back when power is lost.
  const bool may_come_back = is_broken() && !live_.empty();
  if (may_come_back) {
    for (const Live& live : live_) (void)store_->remove(live.name);
  }
  live_.clear();
  pool_.close();
  if (!is_broken()) {
    broken_ = Error{ErrorKind::internal, 0, "the write-behind log " + path() + " was removed"};
  }
  const Status gone = may_come_back ? store_->sync() : Status{};
  return gone ? store_->destroy() : gone;
}

std::uint64_t LogWriter::last_sequence() const {
  const std::scoped_lock lock(mutex_);
  return sequence_;
}

std::uint64_t LogWriter::flushed_sequence() const {
  const std::scoped_lock lock(mutex_);
  return flushed_;
}

std::optional<std::uint64_t> LogWriter::oldest_segment_end() const {
  const std::scoped_lock lock(mutex_);
  for (const Live& live : live_) {
    if (live.last_data > flushed_) return live.last_data;
  }
  return {};
}

Error LogWriter::failure() const {
  const std::scoped_lock lock(mutex_);
  return broken_;
}

Bytes LogWriter::bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

Bytes LogWriter::payload_bytes() const {
  const std::scoped_lock lock(mutex_);
  return payload_bytes_;
}

}  // namespace forebay
