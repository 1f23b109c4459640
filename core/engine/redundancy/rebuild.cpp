#include "core/engine/redundancy/rebuild.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/engine/cache/crc32c.hpp"
#include "core/engine/cache/flush_mark.hpp"
#include "core/engine/redundancy/erasure_code.hpp"

namespace forebay {
namespace {

constexpr Bytes part_bytes = 1 * MiB;

/// The segments of one log, by number.
class SegmentFiles {
 public:
  explicit SegmentFiles(LogStore& store) : store_(store) {}

  Result<StorageFile*> open(std::uint64_t number) {
    const auto known = files_.find(number);
    if (known != files_.end()) return known->second.get();
    auto file = store_.open(segment_name(number));
    if (!file) return tl::unexpected(file.error());
    return files_.emplace(number, std::move(*file)).first->second.get();
  }

  /// A new one, with its superblock.
  Status make(const Superblock& superblock, Bytes size) {
    auto made = store_.create(segment_name(superblock.segment), size);
    if (!made) return tl::unexpected(made.error());
    const auto block = encode_superblock(superblock);
    if (!block) return tl::unexpected(block.error());
    StorageFile& file = *made->storage;
    files_.emplace(superblock.segment, std::move(made->storage));
    return file.write_at(*block, 0);
  }

  Status sync() {
    for (auto& [number, file] : files_) {
      if (auto synced = file->sync(); !synced) return synced;
    }
    return store_.sync();
  }

 private:
  LogStore& store_;
  std::map<std::uint64_t, std::unique_ptr<StorageFile>> files_;
};

/// For each part of bytes [offset, offset + length) of a member's block that lies in one range:
/// `use(range, position in the segment, bytes of the block before the part, its length)`.
template <typename Use>
Status for_ranges(const StripeMember& member, Bytes offset, Bytes length, Use use) {
  Bytes start = 0;  // Of the range, in the block.
  Bytes done = 0;
  for (const StripeRange& range : member.ranges) {
    const Bytes from = std::max(offset, start);
    const Bytes to = std::min(offset + length, start + range.length());
    if (from < to) {
      if (auto used = use(range, range.begin + from - start, done, to - from); !used) return used;
      done += to - from;
    }
    start += range.length();
  }
  return {};
}

using Generation = std::vector<const StoredStripe*>;  ///< Different pieces of one stripe.

class Rebuilding {
 public:
  Rebuilding(std::span<const ParityContents> parity, const StoresByName& left,
             const StoresByName& lost, const RebuildProgress& progress)
      : known_(protected_logs(parity)), progress_(progress) {
    for (const auto& [name, store] : left) left_.emplace(name, *store);
    for (const auto& [name, store] : lost) lost_.emplace(name, *store);
    for (const ParityContents& contents : parity) {
      for (const StoredStripe& stripe : contents.stripes) add(stripe);
    }
  }

  Result<RebuildReport> run() {
    if (auto made = make_segments(); !made) return tl::unexpected(made.error());
    for (const auto& [key, generation] : generations_) {
      if (auto solved = solve(generation); !solved) return tl::unexpected(solved.error());
    }
    for (auto& [name, files] : lost_) {
      if (auto synced = files.sync(); !synced) return tl::unexpected(synced.error());
    }
    return std::move(report_);
  }

  Status put_marks(const StoresByName& lost) {
    for (const auto& [name, store] : lost) {
      const auto log = known_.find(name);
      if (log == known_.end() || log->second.flushed == 0) continue;
      auto mark = FlushMark::open(*store);
      if (!mark) return tl::unexpected(mark.error());
      if (auto put = mark->put(log->second.flushed); !put) return put;
    }
    return {};
  }

 private:
  void add(const StoredStripe& stripe) {
    std::uint64_t& last = last_generations_[{stripe.stripe.group, stripe.stripe.piece}];
    last = std::max(last, stripe.stripe.generation);
    Generation& generation = generations_[{stripe.stripe.group, stripe.stripe.generation}];
    if (!generation.empty() && !generation.front()->stripe.same_stripe(stripe.stripe)) {
      report_.missing.push_back(fmt::format("two parity pieces say different things of stripe {}",
                                            stripe.stripe.generation));
      return;
    }
    const bool have = std::ranges::any_of(generation, [&](const StoredStripe* other) {
      return other->stripe.piece == stripe.stripe.piece;
    });
    if (!have) generation.push_back(&stripe);
  }

  /// What of the log is not in the file and has bytes in the stripe.
  bool wanted(const StripeMember& member) const {
    return lost_.contains(member.identity.log) && member.length() > 0 &&
           member.last_sequence > known_.at(member.identity.log).flushed;
  }

  /// Each as long as what will be in it, so that rebuilding takes no more storage than that.
  Status make_segments() {
    struct Made {
      Superblock superblock;
      Bytes size = 0;
    };
    std::map<std::pair<std::string, std::uint64_t>, Made> segments;
    for (const auto& [key, generation] : generations_) {
      for (const StripeMember& member : generation.front()->stripe.members) {
        if (!wanted(member)) continue;
        for (const StripeRange& range : member.ranges) {
          Made& made = segments[{member.identity.log, range.segment}];
          made.superblock = superblock_of(member, range);
          made.size = std::max(made.size, range.end);
        }
      }
    }
    for (const auto& [key, made] : segments) {
      if (auto done = lost_.at(key.first).make(made.superblock, made.size); !done) return done;
    }
    return {};
  }

  /// Not all parity logs of the group got as far as this stripe.
  bool unfinished(const Stripe& stripe) const {
    return std::ranges::any_of(last_generations_, [&](const auto& entry) {
      return entry.first.first == stripe.group && entry.second < stripe.generation;
    });
  }

  void give_up(const Stripe& stripe, const std::string& why) {
    if (unfinished(stripe)) {
      ++report_.unfinished;
      return;
    }
    report_.missing.push_back(fmt::format("stripe {} of group {} cannot be solved: {}",
                                          stripe.generation, stripe.group, why));
  }

  /// Error: only where a lost log cannot be written.
  Status solve(const Generation& generation) {
    const Stripe& stripe = generation.front()->stripe;
    if (std::ranges::none_of(stripe.members, [&](const auto& member) { return wanted(member); })) {
      return {};
    }
    std::vector<int> lost;
    std::string names;
    std::string wrong;
    for (std::size_t i = 0; i < stripe.members.size(); ++i) {
      const StripeMember& member = stripe.members[i];
      const std::string& name = member.identity.log;
      if (member.length() == 0 || sound(member)) continue;
      lost.push_back(static_cast<int>(i));
      names += (names.empty() ? "" : ", ") + name;
      if (left_.contains(name)) wrong += "; " + name + " does not hold what it did";
    }
    const bool solves = std::ranges::any_of(
        lost, [&](int index) { return wanted(stripe.members[static_cast<std::size_t>(index)]); });
    if (!solves) return copy_left(stripe);
    if (lost.size() > generation.size()) {
      give_up(stripe, fmt::format("{} logs are not there ({}), and {} parity pieces are{}",
                                  lost.size(), names, generation.size(), wrong));
      return {};
    }
    const auto code = ErasureCode::make(static_cast<int>(stripe.members.size()), stripe.parities);
    if (!code) return tl::unexpected(code.error());
    return solve(stripe, *code, lost, std::span(generation).first(lost.size()));
  }

  /// The log is there, and what it has in the stripe is what it was.
  bool sound(const StripeMember& member) {
    const auto files = left_.find(member.identity.log);
    if (files == left_.end()) return false;
    std::uint32_t checksum = 0;
    for (Bytes offset = 0; offset < member.length(); offset += part_bytes) {
      const Bytes part = std::min(part_bytes, member.length() - offset);
      if (!read_left(files->second, member, offset, part)) return false;
      checksum = crc32c(block_, checksum);
    }
    return checksum == member.checksum;
  }

  /// Of what is wanted of the stripe everything is sound.
  Status copy_left(const Stripe& stripe) {
    for (const StripeMember& member : stripe.members) {
      if (!wanted(member)) continue;
      std::uint32_t checksum = 0;
      for (Bytes offset = 0; offset < member.length(); offset += part_bytes) {
        const Bytes part = std::min(part_bytes, member.length() - offset);
        if (auto read = read_left(left_.at(member.identity.log), member, offset, part); !read) {
          give_up(stripe, to_string(read.error()));
          return {};
        }
        if (auto put = put_back(member, offset, block_, checksum); !put) return put;
      }
    }
    ++report_.stripes;
    return {};
  }

  Status solve(const Stripe& stripe, const ErasureCode& code, const std::vector<int>& lost,
               std::span<const StoredStripe* const> pieces) {
    std::vector<std::uint32_t> checksums(stripe.members.size(), 0);
    std::vector<int> parities;
    for (const StoredStripe* piece : pieces) parities.push_back(piece->stripe.piece);
    for (Bytes offset = 0; offset < stripe.length(); offset += part_bytes) {
      const Bytes length = std::min(part_bytes, stripe.length() - offset);
      std::vector<std::vector<std::byte>> parts(pieces.size());
      std::vector<std::span<std::byte>> spans;
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        parts[i].resize(static_cast<std::size_t>(length));
        if (auto read = read_piece(*pieces[i], offset, parts[i]); !read) {
          give_up(stripe, to_string(read.error()));
          return {};
        }
        spans.emplace_back(parts[i]);
      }
      for (std::size_t i = 0; i < stripe.members.size(); ++i) {
        const StripeMember& member = stripe.members[i];
        const auto files = left_.find(member.identity.log);
        const Bytes part = std::min<Bytes>(part_bytes, member.length() - offset);
        const int index = static_cast<int>(i);
        if (files == left_.end() || part <= 0 || std::ranges::count(lost, index) > 0) continue;
        if (auto read = read_left(files->second, member, offset, part); !read) {
          give_up(stripe, to_string(read.error()));
          return {};
        }
        for (std::size_t piece = 0; piece < spans.size(); ++piece) {
          code.fold(parities[piece], index, block_, spans[piece]);
        }
        if (auto put = put_back(member, offset, block_, checksums[i]); !put) return put;
      }
      code.solve(parities, lost, spans);
      for (std::size_t i = 0; i < lost.size(); ++i) {
        const auto index = static_cast<std::size_t>(lost[i]);
        const StripeMember& member = stripe.members[index];
        if (auto put = put_back(member, offset, spans[i], checksums[index]); !put) return put;
      }
    }
    if (const auto wrong = first_wrong(stripe, checksums)) {
      give_up(stripe, *wrong);
    } else {
      ++report_.stripes;
    }
    return {};
  }

  /// What is not what it was when the stripe was made, if anything.
  std::optional<std::string> first_wrong(const Stripe& stripe,
                                         const std::vector<std::uint32_t>& checksums) const {
    std::optional<std::string> wrong;
    for (std::size_t i = 0; i < stripe.members.size(); ++i) {
      const StripeMember& member = stripe.members[i];
      if (checksums[i] == member.checksum) continue;
      if (left_.contains(member.identity.log)) {
        return member.identity.log + " does not hold what it did";
      }
      wrong = "what was made of " + member.identity.log + " is not what it was";
    }
    return wrong;
  }

  /// Part of the log's block, into block_.
  Status read_left(SegmentFiles& files, const StripeMember& member, Bytes offset, Bytes part) {
    block_.resize(static_cast<std::size_t>(part));
    return for_ranges(
        member, offset, part,
        [&](const StripeRange& range, Bytes position, Bytes at, Bytes length) -> Status {
          const auto file = files.open(range.segment);
          if (!file) return tl::unexpected(file.error());
          const auto to = std::span(block_).subspan(static_cast<std::size_t>(at),
                                                    static_cast<std::size_t>(length));
          const auto got = (*file)->read_at(to, position);
          if (!got) return tl::unexpected(got.error());
          if (*got == length) return {};
          return tl::unexpected(Error{ErrorKind::io, 0, (*file)->path() + " ends too early"});
        });
  }

  /// `block` from `offset` of the member's, which may end before it.
  Status put_back(const StripeMember& member, Bytes offset, std::span<const std::byte> block,
                  std::uint32_t& checksum) {
    const Bytes part = std::min(static_cast<Bytes>(block.size()), member.length() - offset);
    if (part <= 0) return {};
    block = block.first(static_cast<std::size_t>(part));
    checksum = crc32c(block, checksum);
    if (!wanted(member)) return {};
    SegmentFiles& files = lost_.at(member.identity.log);
    report_.bytes += part;
    if (progress_) progress_(part);
    return for_ranges(
        member, offset, part,
        [&](const StripeRange& range, Bytes position, Bytes at, Bytes length) -> Status {
          const auto file = files.open(range.segment);
          if (!file) return tl::unexpected(file.error());
          return (*file)->write_at(
              block.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length)),
              position);
        });
  }

  const std::map<std::string, ProtectedLog> known_;
  const RebuildProgress& progress_;
  std::map<std::string, SegmentFiles> left_;
  std::map<std::string, SegmentFiles> lost_;
  std::map<std::pair<std::string, std::uint64_t>, Generation> generations_;  ///< By group.
  std::map<std::pair<std::string, int>, std::uint64_t> last_generations_;    ///< By group, piece.
  std::vector<std::byte> block_;
  RebuildReport report_;
};

}  // namespace

void tell_flushed(std::span<ParityContents> parity, const std::string& log,
                  std::uint64_t sequence) {
  for (ParityContents& contents : parity) {
    for (StoredStripe& stored : contents.stripes) {
      for (StripeMember& member : stored.stripe.members) {
        if (member.identity.log == log) member.flushed = std::max(member.flushed, sequence);
      }
    }
  }
}

std::map<std::string, ProtectedLog> protected_logs(std::span<const ParityContents> parity) {
  std::map<std::string, ProtectedLog> logs;
  const auto each = [&](const auto& use) {
    for (const ParityContents& contents : parity) {
      for (const StoredStripe& stored : contents.stripes) {
        for (const StripeMember& member : stored.stripe.members) use(stored.stripe, member);
      }
    }
  };
  each([&](const Stripe&, const StripeMember& member) {
    ProtectedLog& log = logs[member.identity.log];
    log.identity = member.identity;
    log.flushed = std::max(log.flushed, member.flushed);
    log.last_sequence = std::max(log.last_sequence, member.last_sequence);
  });
  std::set<std::pair<std::string, std::uint64_t>> counted;  // By log and generation.
  each([&](const Stripe& stripe, const StripeMember& member) {
    ProtectedLog& log = logs[member.identity.log];
    const bool needed = member.last_sequence > log.flushed;
    if (needed && counted.emplace(member.identity.log, stripe.generation).second) {
      log.bytes += member.length();
    }
  });
  return logs;
}

Result<RebuildReport> rebuild(std::span<const ParityContents> parity, const StoresByName& left,
                              const StoresByName& lost, const RebuildProgress& progress) {
  Rebuilding rebuilding(parity, left, lost, progress);
  auto report = rebuilding.run();
  if (!report) return report;
  // Last: it is what says that the first records need not be there.
  if (auto marked = rebuilding.put_marks(lost); !marked) return tl::unexpected(marked.error());
  return report;
}

}  // namespace forebay
