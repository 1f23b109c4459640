#include "core/engine/collective/direct_io.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "core/engine/collective/copy_runs.hpp"
#include "core/plan/part_ends.hpp"

namespace forebay {
namespace {

/// Scattered memory passes through a buffer of this size: small enough to stay in a core's cache
/// between the two copies.
constexpr Bytes bounce_bytes = 512 * KiB;
/// Blocks of memory that are as long as this are written from where they lie: naming one to a
/// system call costs less than copying it.
constexpr Bytes least_named_block = KiB;
constexpr std::size_t most_named_blocks = bounce_bytes / least_named_block;
/// Of a shorter piece it is not asked how its memory lies.
constexpr Bytes least_named_piece = 64 * KiB;
/// How many series of blocks are looked at for that.
constexpr int most_named_samples = 8;
constexpr Bytes default_sieve_bytes = 4 * MiB;          // ROMIO's ind_rd_buffer_size
constexpr Bytes default_write_sieve_bytes = 512 * KiB;  // ROMIO's ind_wr_buffer_size

/// How much of a view is looked at before it is used: spans, series of pieces in each, and data. A
/// span's beginning is as dense as the whole, and a program may set a view before every call.
constexpr int most_samples = 16;
constexpr int most_sample_runs = 64;
constexpr Bytes most_tile_bytes = GiB;

/// Where data position 0 of `memory` lies if `length` bytes from there are contiguous.
std::optional<std::byte*> contiguous_address(const TiledTree& memory, Bytes length) {
  const StridedTree& tree = memory.tree;
  if (!tree.dense()) return {};
  if (length > tree.size() && memory.extent != tree.size()) return {};
  return address_of(memory.displacement + tree.lower());
}

/// Whether a part of `memory` lies in long blocks, by the first ones of it.
bool has_long_blocks(TreeCursor memory, Bytes data_end) {
  Bytes bytes = 0;
  std::int64_t blocks = 0;
  Run run;
  for (int i = 0; i < most_named_samples && memory.next(data_end, run); ++i) {
    bytes += run.bytes();
    blocks += run.count;
  }
  return bytes >= blocks * least_named_block;
}

/// Holds a lock for as long as it lives; without `wanted`, does nothing. `turns` keeps threads of
/// this process apart: for the storage they are one.
class RangeLock {
 public:
  RangeLock(StorageFile& storage, std::mutex& turns, Extent range, StorageFile::LockKind kind,
            bool wanted)
      : storage_(storage), range_(range) {
    if (!wanted) return;
    turn_ = std::unique_lock(turns);
    status_ = storage.lock(range, kind);
    held_ = status_.has_value();
  }
  ~RangeLock() {
    if (held_) (void)storage_.unlock(range_);  // Closing the file would release it as well.
  }
  RangeLock(const RangeLock&) = delete;
  RangeLock& operator=(const RangeLock&) = delete;
  const Status& status() const { return status_; }

 private:
  StorageFile& storage_;
  Extent range_;
  std::unique_lock<std::mutex> turn_;
  Status status_;
  bool held_ = false;
};

Extent touched(const Access& access) {
  if (access.view.monotone()) return RankPart{access.view, access.start, access.length}.hull();
  return {0, std::numeric_limits<Bytes>::max()};
}

}  // namespace

DirectIo::DirectIo(StorageFile& storage, Counters& counters, StorageCost cost,
                   const SieveWatch& watch)
    : storage_(storage), counters_(counters), cost_(cost), watch_(watch) {}

void DirectIo::set_hints(const Hints& hints) { hints_ = hints; }

DirectIo::Bounce::Bounce(DirectIo& owner) : owner_(owner) {
  const std::scoped_lock lock(owner_.mutex_);
  if (owner_.spare_.empty()) return;
  bytes_ = std::move(owner_.spare_.back());
  owner_.spare_.pop_back();
}

DirectIo::Bounce::~Bounce() {
  if (bytes_.empty()) return;
  const std::scoped_lock lock(owner_.mutex_);
  owner_.spare_.push_back(std::move(bytes_));
}

std::span<std::byte> DirectIo::Bounce::take(Bytes size) {
  if (static_cast<Bytes>(bytes_.size()) < size) bytes_.resize(static_cast<std::size_t>(size));
  return {bytes_.data(), static_cast<std::size_t>(size)};
}

Result<Bytes> DirectIo::write(const Access& access) {
  if (access.length == 0) return 0;
  const RangeLock lock(storage_, locking_, atomic_ ? touched(access) : Extent{},
                       StorageFile::LockKind::exclusive, atomic_);
  if (!lock.status()) return tl::unexpected(lock.status().error());
  const Status written = write_batches(access, access.start, access.start + access.length);
  return written ? Result<Bytes>(access.length) : tl::unexpected(written.error());
}

DirectIo::Inside DirectIo::write_inside(const Access& access, Bytes granule) {
  if (access.length == 0) return {};
  const RankPart part{access.view, access.start, access.length};
  const Extent bytes = part.hull();
  const Extent whole = whole_granules_in(part, granule);
  const Bytes first = whole.offset - bytes.offset;
  const Bytes last = bytes.end() - whole.end();
  const Status written = write_batches(access, access.start + first, part.end() - last);
  Inside inside{.error = written ? Error{} : written.error(), .ends = {}};
  inside.ends.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(first + last)]);
  if (inside.ends == nullptr) {
    if (written) inside.error = {ErrorKind::no_memory, 0, "a buffer for the ends of a part"};
    return inside;
  }
  TreeCursor memory(access.memory);
  copy_contiguous(memory, inside.ends.get(), first, Direction::gather);
  memory.seek_data(access.length - last);
  copy_contiguous(memory, inside.ends.get() + first, last, Direction::gather);
  Counters::add(counters_.bytes_copied, first + last);
  return inside;
}

Result<Bytes> DirectIo::read(const Access& access) {
  if (access.length == 0) return 0;
  const RangeLock lock(storage_, locking_, atomic_ ? touched(access) : Extent{},
                       StorageFile::LockKind::shared, atomic_);
  if (!lock.status()) return tl::unexpected(lock.status().error());
  return read_batches(access);
}

bool DirectIo::next_batch(TreeCursor& walk, Bytes data_end, const Joining& joining, Batch& batch) {
  batch.begin = batch.end = walk.data_position();
  if (batch.begin >= data_end) return false;
  Run run;
  for (int runs = 0; runs < joining.most_runs && walk.next(data_end, run); ++runs) {
    const Bytes gap_inside = run.count > 1 ? run.stride - run.block : 0;
    if (batch.end > batch.begin) {
      const Bytes gap = run.offset - batch.span.end();
      const bool adjacent = gap == 0 && batch.contiguous();
      const bool joinable = gap >= 0 && gap <= joining.most_gap &&
                            run.offset + run.block - batch.span.offset <= joining.most_span;
      if (!adjacent && !joinable) break;
      if (!adjacent) ++batch.pieces;
    } else {
      batch.span = {run.offset, 0};
      batch.pieces = 1;
    }
    batch.span.length = run.offset + run.block - batch.span.offset;
    batch.end += run.block;
    if (run.count == 1) continue;
    // More blocks of the same run, as far as joining goes.
    const bool joins = gap_inside >= 0 && gap_inside <= joining.most_gap;
    const Bytes room = joining.most_span - batch.span.length;
    const std::int64_t more =
        joins ? std::clamp<std::int64_t>(room / run.stride, 0, run.count - 1) : 0;
    batch.span.length += more * run.stride;
    batch.end += more * run.block;
    batch.pieces += more;
    if (more < run.count - 1) break;
  }
  walk.seek_data(batch.end);
  return true;
}

Bytes DirectIo::write_buffer() const {
  return std::max<Bytes>(1, hints_.independent_write_buffer.value_or(default_write_sieve_bytes));
}

DirectIo::Joining DirectIo::write_joining(const SievingCost& cost, Bytes offset) const {
  // Spans end at multiples of the buffer: ranks whose pieces interleave then lock the same ones,
  // and on a striped file few spans lie on two servers.
  const Bytes buffer = write_buffer();
  const Bytes room = buffer - offset % buffer;
  return {hints_.sieve_write == Toggle::enable ? room : most_sieved_gap(cost), room};
}

bool DirectIo::worth_sieving(const Batch& batch, const SievingCost& cost) const {
  if (batch.contiguous()) return false;
  return hints_.sieve_write == Toggle::enable ||
         sieving_pays({batch.pieces, batch.end - batch.begin, batch.span.length}, cost);
}

bool DirectIo::sieving_helps(const TiledTree& view, const SievingCost& cost) const {
  if (hints_.sieve_write == Toggle::disable || view.tree.size() == 0 || !view.monotone()) {
    return false;
  }
  const Bytes enough = 2 * std::min(view.tree.size(), most_tile_bytes) + write_buffer();
  TreeCursor walk(view);
  for (int i = 0; i < most_samples; ++i) {
    Batch batch;
    Joining joining = write_joining(cost, walk.offset());
    joining.most_runs = most_sample_runs;
    if (!next_batch(walk, enough, joining, batch)) return false;
    if (worth_sieving(batch, cost)) return true;
  }
  return false;
}

Status DirectIo::write_batches(const Access& access, Bytes begin, Bytes end) {
  const bool allowed = hints_.sieve_write != Toggle::disable && access.view.monotone();
  const std::optional<SievingCost> cost = allowed ? sieving_ : std::nullopt;
  // Who sieves puts old bytes back into the gaps: what is written there meanwhile would be lost.
  const bool guarded = !atomic_ && (sieving_ || watch_.sieving());
  const Extent range = guarded ? touched(access) : Extent{};
  std::optional<RangeLock> guard;
  TreeCursor walk(access.view);
  walk.seek_data(begin);
  Call call{access, TreeCursor(access.memory), Bounce(*this)};
  Batch batch;
  while (walk.data_position() < end) {
    const Joining joining = cost ? write_joining(*cost, walk.offset()) : Joining{};
    if (!next_batch(walk, end, joining, batch)) break;
    Status status;
    if (cost && worth_sieving(batch, *cost)) {
      guard.reset();  // Two that hold the shared lock and want the exclusive one wait for ever.
      status = write_sieved(call, batch);
    } else {
      if (guarded && !guard) {
        guard.emplace(storage_, locking_, range, StorageFile::LockKind::shared, true);
        status = guard->status();
      }
      if (status) status = write_pieces(call, batch);
    }
    if (!status) return status;
  }
  return {};
}

Status DirectIo::write_pieces(Call& call, const Batch& batch) {
  if (batch.contiguous()) return write_contiguous(call, batch);
  TreeCursor walk(call.access.view);
  walk.seek_data(batch.begin);
  for (Batch piece; next_batch(walk, batch.end, {}, piece);) {
    if (auto status = write_contiguous(call, piece); !status) return status;
  }
  return {};
}

Status DirectIo::write_contiguous(Call& call, const Batch& batch) {
  const Bytes done = batch.begin - call.access.start;
  if (const auto address = contiguous_address(call.access.memory, call.access.length)) {
    return storage_.write_at({*address + done, static_cast<std::size_t>(batch.span.length)},
                             batch.span.offset);
  }
  call.memory.seek_data(done);
  for (Bytes at = 0; at < batch.span.length;) {
    const Bytes length = std::min(bounce_bytes, batch.span.length - at);
    if (length >= least_named_piece && has_long_blocks(call.memory, done + at + length)) {
      const auto written = write_named(call.memory, length, batch.span.offset + at);
      if (!written) return tl::unexpected(written.error());
      at += *written;
      continue;
    }
    const std::span<std::byte> buffer = call.bounce.take(length);
    copy_contiguous(call.memory, buffer.data(), static_cast<Bytes>(buffer.size()),
                    Direction::gather);
    Counters::add(counters_.bytes_copied, static_cast<Bytes>(buffer.size()));
    if (auto status = storage_.write_at(buffer, batch.span.offset + at); !status) return status;
    at += length;
  }
  return {};
}

/// The next `length` bytes of `memory`, or as many as lie in its next most_named_blocks, from where
/// they lie. Returns how many.
Result<Bytes> DirectIo::write_named(TreeCursor& memory, Bytes length, Bytes offset) {
  std::vector<iovec> blocks;
  blocks.reserve(most_named_blocks);
  const Bytes begin = memory.data_position();
  Bytes named = 0;
  for (Run run; blocks.size() < most_named_blocks && memory.next(begin + length, run);) {
    for (std::int64_t i = 0; i < run.count && blocks.size() < most_named_blocks; ++i) {
      blocks.push_back(
          {address_of(run.offset + i * run.stride), static_cast<std::size_t>(run.block)});
      named += run.block;
    }
  }
  memory.seek_data(begin + named);
  const auto status = storage_.write_pieces(blocks, offset);
  return status ? Result<Bytes>(named) : tl::unexpected(status.error());
}

Status DirectIo::write_sieved(Call& call, const Batch& batch) {
  const RangeLock lock(storage_, locking_, batch.span, StorageFile::LockKind::exclusive, !atomic_);
  if (!lock.status()) return lock.status();
  const std::span<std::byte> buffer = call.bounce.take(batch.span.length);
  const auto got = storage_.read_at(buffer, batch.span.offset);
  if (!got) return tl::unexpected(got.error());
  std::fill(buffer.begin() + *got, buffer.end(), std::byte{0});  // Beyond the end of the file.
  Counters::add(counters_.hole_reads, 1);
  TreeCursor file(call.access.view);
  file.seek_data(batch.begin);
  call.memory.seek_data(batch.begin - call.access.start);
  for (Run run; file.next(batch.end, run);) {
    copy_run(call.memory, run, buffer.data(), batch.span.offset, Direction::gather);
  }
  Counters::add(counters_.bytes_copied, batch.end - batch.begin);
  return storage_.write_at(buffer, batch.span.offset);
}

Result<Bytes> DirectIo::read_batches(const Access& access) {
  const bool sieve = hints_.sieve_read != Toggle::disable && access.view.monotone();
  const Bytes buffer = hints_.independent_read_buffer.value_or(default_sieve_bytes);
  const Bytes cheap_gap = static_cast<Bytes>(cost_.call_ns / std::max(cost_.byte_ns, 0.01));
  const Joining joining =
      !sieve ? Joining{}
             : Joining{hints_.sieve_read == Toggle::enable ? buffer : cheap_gap, buffer};
  TreeCursor walk(access.view);
  walk.seek_data(access.start);
  Call call{access, TreeCursor(access.memory), Bounce(*this)};
  Batch batch;
  while (next_batch(walk, access.start + access.length, joining, batch)) {
    const Result<Bytes> got =
        batch.contiguous() ? read_contiguous(call, batch) : read_sieved(call, batch);
    if (!got) return got;
    // The file ends inside this batch: what follows lies beyond.
    if (*got < batch.end - batch.begin) return batch.begin - access.start + *got;
  }
  return access.length;
}

Result<Bytes> DirectIo::read_contiguous(Call& call, const Batch& batch) {
  const Bytes done = batch.begin - call.access.start;
  if (const auto address = contiguous_address(call.access.memory, call.access.length)) {
    return storage_.read_at({*address + done, static_cast<std::size_t>(batch.span.length)},
                            batch.span.offset);
  }
  call.memory.seek_data(done);
  for (Bytes at = 0; at < batch.span.length; at += bounce_bytes) {
    const std::span<std::byte> buffer =
        call.bounce.take(std::min(bounce_bytes, batch.span.length - at));
    const auto got = storage_.read_at(buffer, batch.span.offset + at);
    if (!got) return got;
    copy_contiguous(call.memory, buffer.data(), *got, scatter_of(call.access.length));
    Counters::add(counters_.bytes_copied, *got);
    if (*got < static_cast<Bytes>(buffer.size())) return at + *got;
  }
  return batch.span.length;
}

Result<Bytes> DirectIo::read_sieved(Call& call, const Batch& batch) {
  const std::span<std::byte> buffer = call.bounce.take(batch.span.length);
  const auto got = storage_.read_at(buffer, batch.span.offset);
  if (!got) return got;
  TreeCursor file(call.access.view);
  file.seek_data(batch.begin);
  call.memory.seek_data(batch.begin - call.access.start);
  for (Run run; file.next(batch.end, batch.span.offset + *got, run);) {
    copy_run(call.memory, run, buffer.data(), batch.span.offset, scatter_of(call.access.length));
  }
  const Bytes copied = file.data_position() - batch.begin;
  Counters::add(counters_.bytes_copied, copied);
  return copied;
}

}  // namespace forebay
