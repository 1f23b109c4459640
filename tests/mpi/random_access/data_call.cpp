#include "tests/mpi/random_access/data_call.hpp"

#include <algorithm>

#include "tests/mpi/random_access/random.hpp"

namespace random_access {
namespace {

/// The bytes around the data of a call.
constexpr std::int64_t guard_bytes = 64;

int blocking(MPI_File file, const CallKind& kind, MPI_Offset offset, const CallBuffer& b,
             MPI_Status* status) {
  if (kind.pointer == Pointer::at) {
    if (kind.direction == Direction::read) {
      const auto call = kind.collective ? MPI_File_read_at_all : MPI_File_read_at;
      return call(file, offset, b.address(), b.count(), b.type(), status);
    }
    const auto call = kind.collective ? MPI_File_write_at_all : MPI_File_write_at;
    return call(file, offset, b.address(), b.count(), b.type(), status);
  }
  const bool shared = kind.pointer == Pointer::shared;
  if (kind.direction == Direction::read) {
    const auto call = kind.collective ? (shared ? MPI_File_read_ordered : MPI_File_read_all)
                                      : (shared ? MPI_File_read_shared : MPI_File_read);
    return call(file, b.address(), b.count(), b.type(), status);
  }
  const auto call = kind.collective ? (shared ? MPI_File_write_ordered : MPI_File_write_all)
                                    : (shared ? MPI_File_write_shared : MPI_File_write);
  return call(file, b.address(), b.count(), b.type(), status);
}

int split(MPI_File file, const CallKind& kind, MPI_Offset offset, const CallBuffer& b,
          MPI_Status* status) {
  const bool reading = kind.direction == Direction::read;
  int code = MPI_SUCCESS;
  switch (kind.pointer) {
    case Pointer::at:
      code = reading ? MPI_File_read_at_all_begin(file, offset, b.address(), b.count(), b.type())
                     : MPI_File_write_at_all_begin(file, offset, b.address(), b.count(), b.type());
      if (code != MPI_SUCCESS) return code;
      return reading ? MPI_File_read_at_all_end(file, b.address(), status)
                     : MPI_File_write_at_all_end(file, b.address(), status);
    case Pointer::individual:
      code = reading ? MPI_File_read_all_begin(file, b.address(), b.count(), b.type())
                     : MPI_File_write_all_begin(file, b.address(), b.count(), b.type());
      if (code != MPI_SUCCESS) return code;
      return reading ? MPI_File_read_all_end(file, b.address(), status)
                     : MPI_File_write_all_end(file, b.address(), status);
    case Pointer::shared:
      code = reading ? MPI_File_read_ordered_begin(file, b.address(), b.count(), b.type())
                     : MPI_File_write_ordered_begin(file, b.address(), b.count(), b.type());
      if (code != MPI_SUCCESS) return code;
      return reading ? MPI_File_read_ordered_end(file, b.address(), status)
                     : MPI_File_write_ordered_end(file, b.address(), status);
  }
  return MPI_ERR_INTERN;
}

int nonblocking(MPI_File file, const CallKind& kind, MPI_Offset offset, const CallBuffer& b,
                MPI_Status* status) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code = MPI_SUCCESS;
  if (kind.pointer == Pointer::at) {
    if (kind.direction == Direction::read) {
      const auto call = kind.collective ? MPI_File_iread_at_all : MPI_File_iread_at;
      code = call(file, offset, b.address(), b.count(), b.type(), &request);
    } else {
      const auto call = kind.collective ? MPI_File_iwrite_at_all : MPI_File_iwrite_at;
      code = call(file, offset, b.address(), b.count(), b.type(), &request);
    }
  } else if (kind.direction == Direction::read) {
    const auto call = kind.collective                       ? MPI_File_iread_all
                      : kind.pointer == Pointer::individual ? MPI_File_iread
                                                            : MPI_File_iread_shared;
    code = call(file, b.address(), b.count(), b.type(), &request);
  } else {
    const auto call = kind.collective                       ? MPI_File_iwrite_all
                      : kind.pointer == Pointer::individual ? MPI_File_iwrite
                                                            : MPI_File_iwrite_shared;
    code = call(file, b.address(), b.count(), b.type(), &request);
  }
  return code != MPI_SUCCESS ? code : MPI_Wait(&request, status);
}

}  // namespace

std::string CallKind::name() const {
  std::string name = timing == Timing::nonblocking ? "i" : "";
  name += direction == Direction::read ? "read" : "write";
  if (pointer == Pointer::at) name += "_at";
  if (pointer == Pointer::shared) name += collective ? "_ordered" : "_shared";
  if (collective && pointer != Pointer::shared) name += "_all";
  if (timing == Timing::split) name += "_begin_end";
  return name;
}

bool CallKind::exists() const {
  if (timing == Timing::split) return collective;
  if (timing == Timing::nonblocking) return !(collective && pointer == Pointer::shared);
  return true;
}

CallBuffer::CallBuffer(const TypeModel& type, std::int64_t count, std::uint64_t seed,
                       bool from_bottom)
    : type_(type) {
  const std::int64_t first = type.first_byte(count);
  const std::int64_t end = type.end_byte(count);
  origin_ = guard_bytes - std::min<std::int64_t>(0, first);
  bytes.resize(static_cast<std::size_t>(origin_ + std::max<std::int64_t>(0, end) + guard_bytes));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(mix(seed ^ i));
  }
  if (!from_bottom) {
    handle_ = type.make();
    address_ = bytes.data() + origin_;
    count_ = static_cast<int>(count);
  } else {
    MPI_Datatype inner = type.make();
    const int length = static_cast<int>(count);
    MPI_Aint place = 0;
    MPI_Get_address(bytes.data() + origin_, &place);
    MPI_Type_create_hindexed(1, &length, &place, inner, &handle_);
    MPI_Type_free(&inner);
    address_ = MPI_BOTTOM;
    count_ = 1;
  }
  if (handle_ != MPI_DATATYPE_NULL) MPI_Type_commit(&handle_);
}

CallBuffer::~CallBuffer() {
  if (handle_ != MPI_DATATYPE_NULL) MPI_Type_free(&handle_);
}

int carry_out(MPI_File file, const CallKind& kind, MPI_Offset offset, const CallBuffer& buffer,
              MPI_Status* status) {
  switch (kind.timing) {
    case Timing::blocking:
      return blocking(file, kind, offset, buffer, status);
    case Timing::split:
      return split(file, kind, offset, buffer, status);
    case Timing::nonblocking:
      return nonblocking(file, kind, offset, buffer, status);
  }
  return MPI_ERR_INTERN;
}

bool type_agrees(const TypeModel& type) {
  constexpr int copies = 3;
  const CallBuffer buffer(type, copies, 1, false);
  if (buffer.type() == MPI_DATATYPE_NULL) return false;
  MPI_Aint lower = 0, extent = 0;
  MPI_Type_get_extent(buffer.type(), &lower, &extent);
  int size = 0;
  MPI_Type_size(buffer.type(), &size);
  if (size != type.size() || lower != type.lower || extent != type.extent()) return false;
  size *= copies;
  std::vector<std::uint8_t> packed(static_cast<std::size_t>(size) + 1);
  int position = 0;
  MPI_Pack(buffer.address(), copies, buffer.type(), packed.data(), static_cast<int>(packed.size()),
           &position, MPI_COMM_SELF);
  if (position != size) return false;
  for (int i = 0; i < size; ++i) {
    if (packed[static_cast<std::size_t>(i)] != buffer.bytes[buffer.index(i)]) return false;
  }
  return true;
}

}  // namespace random_access
