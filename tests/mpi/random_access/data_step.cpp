// The data calls of a case: what each rank does, in the model and for real.
#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "tests/mpi/random_access/random_case.hpp"

namespace random_access {
namespace {

/// Files stay small, so that many cases can be tried.
constexpr std::int64_t file_bytes_max = 400000;

/// How much one rank moves in one call: most calls are small, a few need several buffers.
std::int64_t random_amount(Random& random) {
  const std::int64_t choice = random.below(100);
  if (choice < 30) return random.between(1, 64);
  if (choice < 65) return random.between(1, 2000);
  if (choice < 93) return random.between(1, 20000);
  return random.between(20000, 120000);
}

}  // namespace

std::uint64_t RandomCase::data_seed(int rank) const {
  return mix(seed_ ^ (static_cast<std::uint64_t>(step_) << 32) ^
             (static_cast<std::uint64_t>(rank) << 56));
}

CallKind RandomCase::random_kind() {
  CallKind kind;
  do {
    kind.direction = random_.percent(50) ? Direction::read : Direction::write;
    if (!readable()) kind.direction = Direction::write;
    if (!writable()) kind.direction = Direction::read;
    const std::int64_t pointer = random_.below(views_.uniform ? 3 : 2);
    kind.pointer = static_cast<Pointer>(pointer);
    const std::int64_t timing = random_.below(10);
    kind.timing = timing < 6 ? Timing::blocking : timing < 8 ? Timing::split : Timing::nonblocking;
    kind.collective = random_.percent(65);
  } while (!kind.exists());
  return kind;
}

/// What `rank` does, as many whole etypes as fit; nothing if the file would get too large.
RandomCase::Part RandomCase::random_part(const CallKind& kind, int rank, std::int64_t amount,
                                         bool past_end) {
  const ViewModel& mine = view(rank);
  Part part;
  part.kind = kind;
  const bool reading = kind.direction == Direction::read;
  part.memory = mild_ ? mild_memory_type(random_)
                      : memory_type(random_, static_cast<int>(random_.between(0, 3)), reading);
  if (reading && !part.memory.distinct(3)) part.memory = contiguous(1, mine.etype);
  const std::int64_t etype_bytes = mine.etype.size();
  const std::int64_t somewhere = random_.between(0, random_.percent(50) ? 20 : 2000) * etype_bytes;
  switch (kind.pointer) {
    case Pointer::at:
      part.start = somewhere;
      break;
    case Pointer::individual:
      part.start = positions_[static_cast<std::size_t>(rank)];
      break;
    case Pointer::shared:
      part.start = shared_position_;
      break;
  }
  if (random_.percent(8)) amount = 0;
  if (mine.filetype.size() == 0 || part.memory.size() == 0) return part;
  std::int64_t bytes = amount;
  if (reading && !past_end) {
    bytes = std::min(bytes, mine.data_before(model_.size()) - part.start);
  }
  const std::int64_t unit = etype_bytes / std::gcd(etype_bytes, part.memory.size());
  part.count = std::max<std::int64_t>(0, bytes) / (unit * part.memory.size()) * unit;
  // Reading into overlapping copies is forbidden, and checking many is dear: checked above for 3.
  if (reading && part.memory.extent() * part.count < part.memory.end_byte(1) &&
      !part.memory.distinct(part.count)) {
    part.count = 0;
  }
  const std::int64_t length = part.count * part.memory.size();
  if (length > 0 && mine.offset(part.start + length - 1) >= file_bytes_max) part.count = 0;
  for (std::int64_t i = 0; i < part.count * part.memory.size(); ++i) {
    part.offsets.push_back(mine.offset(part.start + i));
  }
  return part;
}

/// What ranks do at the same time may not conflict: the later one does nothing. Nor may a read
/// depend on whether another rank has made the file longer yet.
void RandomCase::keep_apart(std::vector<Part>& parts) {
  std::map<std::int64_t, bool> touched;  // Offset, and whether it is written.
  bool grows = false;
  for (const Part& part : parts) {
    const bool writing = part.kind.direction == Direction::write;
    grows |= writing && part.length() > 0 && part.offsets.back() >= model_.size();
  }
  for (Part& part : parts) {
    const bool writing = part.kind.direction == Direction::write;
    const bool conflict =
        std::any_of(part.offsets.begin(), part.offsets.end(), [&](std::int64_t offset) {
          const auto found = touched.find(offset);
          return (found != touched.end() && (writing || found->second)) ||
                 (!writing && grows && offset >= model_.size());
        });
    if (conflict) {
      part.count = 0;
      part.offsets.clear();
    }
    for (const std::int64_t offset : part.offsets) touched[offset] |= writing;
  }
}

void RandomCase::seek_individual() {
  const ViewModel& mine = view(rank_);
  const int whence = random_.percent(60) ? MPI_SEEK_SET : MPI_SEEK_CUR;
  std::int64_t my_offset = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    std::int64_t& position = positions_[static_cast<std::size_t>(rank)];
    const std::int64_t etype_bytes = view(rank).etype.size();
    const std::int64_t target = random_.between(0, 1000);
    if (rank == rank_) {
      my_offset = whence == MPI_SEEK_SET ? target : target - position / etype_bytes;
    }
    position = target * etype_bytes;
  }
  const int code = MPI_File_seek(file_, my_offset, whence);
  seen_.expect_class("seek", code, MPI_SUCCESS);
  MPI_Offset position = -1;
  MPI_File_get_position(file_, &position);
  seen_.expect("sought", position, positions_[static_cast<std::size_t>(rank_)] / mine.etype.size());
}

void RandomCase::seek_shared() {
  const std::int64_t etype_bytes = view(0).etype.size();
  const int whence = random_.percent(60) ? MPI_SEEK_SET : MPI_SEEK_CUR;
  const std::int64_t target = random_.between(0, 1000);
  const std::int64_t offset =
      whence == MPI_SEEK_SET ? target : target - shared_position_ / etype_bytes;
  shared_position_ = target * etype_bytes;
  seen_.expect_class("seek_shared", MPI_File_seek_shared(file_, offset, whence), MPI_SUCCESS);
  MPI_Barrier(comm_);
}

void RandomCase::data_call() {
  CallKind kind = random_kind();
  const std::int64_t amount = random_amount(random_);
  const bool same_amount = random_.percent(60);
  const bool past_end = random_.percent(10);
  const bool seeks = random_.percent(50);
  seen_.begin(step_, (kind.collective ? "" : "independent ") + kind.name());
  if (kind.pointer == Pointer::individual && seeks) seek_individual();
  if (kind.pointer == Pointer::shared && seeks) seek_shared();

  const bool shared = kind.pointer == Pointer::shared;
  const std::int64_t shared_before = shared_position_;
  std::vector<Part> parts;
  for (int rank = 0; rank < ranks_; ++rank) {
    CallKind part_kind = kind;
    // Independent calls need not be alike.
    if (!kind.collective && !shared && readable() && writable() && random_.percent(30)) {
      part_kind.direction = random_.percent(50) ? Direction::read : Direction::write;
    }
    const std::int64_t part_amount = same_amount ? amount : random_amount(random_);
    parts.push_back(random_part(part_kind, rank, part_amount, past_end));
    // At one pointer no two parts overlap, so keep_apart() will not drop any.
    if (shared) shared_position_ += parts.back().length();
  }
  const Part& mine = parts[static_cast<std::size_t>(rank_)];
  const bool good_type = agreed(type_agrees(mine.memory));
  if (!good_type) {
    shared_position_ = shared_before;
    seen_.expect("type_agrees", 0, 1);
    observe_pointers();
    seen_.end();
    return;
  }
  keep_apart(parts);

  bool sync = random_.percent(30);
  for (int rank = 0; rank < ranks_; ++rank) {
    sync |= model_.needs_sync(rank, parts[static_cast<std::size_t>(rank)].offsets);
  }
  if (sync) synchronise();
  // Shared pointers of independent calls are moved in the order of ranks.
  if (shared && !kind.collective) {
    for (int rank = 0; rank < ranks_; ++rank) {
      if (rank == rank_) carry_out_part(mine);
      MPI_Barrier(comm_);
    }
  } else {
    carry_out_part(mine);
  }
  apply(parts);
  if (shared) MPI_Barrier(comm_);
  observe_pointers();
  seen_.end();
}

void RandomCase::carry_out_part(const Part& part) {
  const ViewModel& mine = view(rank_);
  const bool reading = part.kind.direction == Direction::read;
  const bool from_bottom = part.length() > 0 && data_seed(rank_) % 10 == 0;
  CallBuffer buffer(part.memory, part.count, data_seed(rank_), from_bottom);
  tell(part.kind.name() + " start " + std::to_string(part.start) + " count " +
       std::to_string(part.count) + (from_bottom ? " from MPI_BOTTOM of " : " of ") +
       part.memory.text);

  std::int64_t moved = part.length();
  std::vector<std::uint8_t> expected = buffer.bytes;
  if (reading) {
    moved = std::lower_bound(part.offsets.begin(), part.offsets.end(), model_.size()) -
            part.offsets.begin();
    for (std::int64_t i = 0; i < moved; ++i) {
      expected[buffer.index(i)] = model_.byte(part.offsets[static_cast<std::size_t>(i)]);
    }
  }
  MPI_Status status;
  const int code = carry_out(file_, part.kind, part.start / mine.etype.size(), buffer, &status);
  // MPI does not say what becomes of the memory that a short read does not reach.
  for (std::int64_t i = 0; reading && i < part.length(); ++i) {
    const bool open = i >= moved || !model_.defined(part.offsets[static_cast<std::size_t>(i)]);
    if (open) buffer.bytes[buffer.index(i)] = expected[buffer.index(i)] = 0;
  }
  seen_.expect_class(reading ? "read" : "write", code, MPI_SUCCESS);
  seen_.expect_bytes("memory", buffer.bytes, expected);
  int bytes = -1;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  seen_.expect("bytes", bytes, moved);
  if (part.length() == 0 || from_bottom) return;
  int count = -1;
  MPI_Get_count(&status, buffer.type(), &count);
  const std::int64_t size = part.memory.size();
  seen_.expect("count", count, moved % size == 0 ? moved / size : std::int64_t{MPI_UNDEFINED});
  if (part.memory.uncountable) return;
  // Elements that are there in part have no number.
  std::int64_t rest = moved % size;
  auto elements = moved / size * static_cast<std::int64_t>(part.memory.elements.size());
  for (auto element = part.memory.elements.begin(); rest > 0; ++element) {
    rest -= *element;
    ++elements;
  }
  MPI_Get_elements(&status, buffer.type(), &count);
  if (rest == 0) seen_.expect("elements", count, elements);
}

void RandomCase::apply(const std::vector<Part>& parts) {
  for (int rank = 0; rank < ranks_; ++rank) {
    const Part& part = parts[static_cast<std::size_t>(rank)];
    if (part.kind.pointer == Pointer::individual) {
      positions_[static_cast<std::size_t>(rank)] += part.length();
    }
    if (part.kind.direction == Direction::read || part.length() == 0) continue;
    const CallBuffer buffer(part.memory, part.count, data_seed(rank), false);
    for (std::int64_t i = 0; i < part.length(); ++i) {
      model_.write(rank, part.offsets[static_cast<std::size_t>(i)], buffer.bytes[buffer.index(i)]);
    }
  }
}

}  // namespace random_access
