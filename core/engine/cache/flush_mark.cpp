#include "core/engine/cache/flush_mark.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <vector>

#include "core/engine/cache/sealed_block.hpp"

namespace forebay {
namespace {

constexpr Bytes place_bytes = 512;
constexpr int places = 2;
constexpr BlockKind mark_block{"FBWBFLU\n", 1, "write-behind log flush mark"};

/// One place. No value: nothing was ever put there.
Result<std::optional<std::uint64_t>> read_place(std::span<const std::byte> block) {
  if (all_zeros(block)) return std::nullopt;
  const auto body = open_block(mark_block, block);
  if (!body) return tl::unexpected(body.error());
  std::uint64_t sequence = 0;
  if (!get_field(*body, "sequence", sequence)) {
    return tl::unexpected(Error{ErrorKind::io, 0, "a flush mark lacks its field"});
  }
  return std::optional(sequence);
}

/// Which place says most, and what it says: 0 if none says anything.
struct Newest {
  int place = 1;
  std::uint64_t sequence = 0;
};

Result<Newest> read_places(StorageFile& file) {
  std::vector<std::byte> blocks(static_cast<std::size_t>(places * place_bytes));
  const auto got = file.read_at(blocks, 0);
  if (!got) return tl::unexpected(got.error());
  Newest newest;
  for (int place = 0; place < places; ++place) {
    const auto sequence = read_place(
        std::span(blocks).subspan(static_cast<std::size_t>(place * place_bytes), place_bytes));
    if (!sequence && sequence.error().kind == ErrorKind::unsupported) {
      return tl::unexpected(sequence.error());
    }
    // A damaged place was being rewritten: what it was to say had not been promised yet.
    const std::uint64_t found = sequence ? sequence->value_or(0) : 0;
    if (found > newest.sequence) newest = {place, found};
  }
  return newest;
}

}  // namespace

Result<FlushMark> FlushMark::open(LogStore& store) {
  auto existing = store.open(flush_mark_name);
  if (existing) {
    const auto newest = read_places(**existing);
    if (!newest) return tl::unexpected(newest.error());
    return FlushMark(std::move(*existing), 1 - newest->place);
  }
  if (existing.error().kind != ErrorKind::no_such_file) return tl::unexpected(existing.error());
  auto made = store.create(flush_mark_name, places * place_bytes);
  if (!made) return tl::unexpected(made.error());
  // A mark that is durable is of no use without its name.
  if (auto named = store.sync(); !named) return tl::unexpected(named.error());
  return FlushMark(std::move(made->storage), 0);
}

Status FlushMark::put(std::uint64_t sequence) {
  const auto block = seal_block(mark_block, {{"sequence", sequence}}, place_bytes);
  if (!block) return tl::unexpected(block.error());
  if (auto written = file_->write_at(*block, next_place_ * place_bytes); !written) return written;
  next_place_ = 1 - next_place_;
  return file_->sync();
}

Result<std::uint64_t> FlushMark::read(LogStore& store) {
  const auto file = store.open(flush_mark_name);
  if (!file) {
    if (file.error().kind == ErrorKind::no_such_file) return 0;
    return tl::unexpected(file.error());
  }
  const auto newest = read_places(**file);
  if (!newest) return tl::unexpected(newest.error());
  return newest->sequence;
}

}  // namespace forebay
