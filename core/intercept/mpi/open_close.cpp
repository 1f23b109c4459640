#include "core/intercept/mpi/open_close.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/engine/collective/mpi_exchange.hpp"
#include "core/intercept/mpi/declared_hints.hpp"
#include "core/intercept/mpi/interception.hpp"
#include "core/intercept/mpi/open_file.hpp"
#include "core/intercept/mpi/real_mpi.hpp"
#include "core/storage/file.hpp"

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;

/// The path behind an MPI file name: ROMIO and OMPIO accept the file system's name before it, as in
/// "lustre:/scratch/a". None for a prefix that says something we do not carry out.
std::optional<std::string> posix_path(const std::string& name) {
  static constexpr std::string_view ours[] = {"ufs:", "nfs:", "xfs:", "lustre:", "gpfs:"};
  for (const std::string_view prefix : ours) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  const auto colon = name.find(':');
  const bool prefixed = colon != std::string::npos && name.find('/') > colon;
  std::error_code ignored;
  if (prefixed && !std::filesystem::exists(name, ignored)) return {};
  return name;
}

/// Beside the data file, so that it is shared as the data file is. `id` keeps openings apart.
std::string shared_pointer_path(const std::string& path, std::int64_t id) {
  const std::filesystem::path file(path);
  return (file.parent_path() /
          ("." + file.filename().string() + ".forebay-pointer-" + std::to_string(id)))
      .string();
}

/// One datatype reader for all files that are open, gone when the last is closed.
std::shared_ptr<const DatatypeReader> datatype_reader() {
  static std::mutex mutex;
  static std::weak_ptr<const DatatypeReader> current;
  const std::lock_guard lock(mutex);
  auto reader = current.lock();
  if (reader == nullptr) {
    reader = std::make_shared<const DatatypeReader>();
    current = reader;
  }
  return reader;
}

/// Forebay's own descriptor. Writing into holes needs reading, so a write-only file is opened for
/// both.
Result<std::unique_ptr<StorageFile>> open_storage(const std::string& path, int amode,
                                                  Counters& counters) {
  const bool reading = (amode & MPI_MODE_RDONLY) != 0;
  return open_posix_file(path, reading ? OpenMode::read_only : OpenMode::read_write, counters);
}

/// Why a file is left to the MPI from open to close; empty if it is not. The same on every rank.
std::string_view reason_to_pass(const Hints& hints, int amode, bool path_known) {
  if (hints.passthrough) return "hint forebay=disable";
  if ((amode & MPI_MODE_SEQUENTIAL) != 0) return "MPI_MODE_SEQUENTIAL";
  if (!path_known) return "file system prefix that only the MPI knows";
  return {};
}

/// An id that no other opening of the same file has: of rank 0's process and this moment.
std::int64_t opening_id(Exchange& exchange) {
  const std::int64_t now = std::chrono::system_clock::now().time_since_epoch().count();
  std::int64_t id = exchange.rank() == 0 ? (now ^ (std::int64_t{getpid()} << 40)) & INT64_MAX : 0;
  exchange.all_reduce({&id, 1}, Reduce::sum);
  return id;
}

/// Gives `file` its shadow, or the reason why it has none. Collective.
void make_shadow(OpenFile& file, const std::string& name, MPI_Info info) {
  FileRecord& record = file.record;
  const auto path = posix_path(name);
  DeclaredHints declared = declare_at_open(*file.exchange, record.path, info);
  record.hint_problems = std::move(declared.problems);
  file.pass_reason = reason_to_pass(declared.hints, record.amode, path.has_value());
  if (!file.pass_reason.empty()) return;

  auto storage = open_storage(*path, record.amode, record.counters);
  Bytes size = 0;
  if (storage && (record.amode & MPI_MODE_APPEND) != 0) size = (*storage)->size().value_or(0);
  // Opened everywhere, and where an appending program starts: rank 0 may have seen a size that
  // others do not see yet.
  std::int64_t opened = storage.has_value();
  file.exchange->all_reduce({&opened, 1}, Reduce::min);
  if (opened == 0) {
    file.pass_reason = "Forebay could not open the file itself";
    if (!storage) record.notes.push_back(to_string(storage.error()));
    return;
  }
  std::int64_t end = size;
  file.exchange->all_reduce({&end, 1}, Reduce::max);
  record.layout = (*storage)->layout();
  auto engine = CollectiveFile::open(file.exchange, std::move(*storage), declared.hints,
                                     record.counters);
  file.shadow = std::make_unique<ShadowFile>(
      std::move(engine), datatype_reader(), declared.hints,
      shared_pointer_path(*path, opening_id(*file.exchange)), end);
}

/// The communicator on which ranks of this opening talk: a split and not a duplicate, which would run
/// the program's attribute copy functions. Null where MPI_File_open would refuse `comm`.
MPI_Comm own_communicator(MPI_Comm comm) {
  int is_inter = 0;
  if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS ||
      is_inter != 0) {
    return MPI_COMM_NULL;
  }
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  MPI_Comm own = MPI_COMM_NULL;
  PMPI_Comm_split(comm, 0, rank, &own);
  return own;
}

int open_tracked(MPI_Comm own, MPI_Comm comm, const char* filename, int amode, MPI_Info info,
                 MPI_File* fh) {
  const auto start = Clock::now();
  auto file = std::make_shared<OpenFile>();
  file->exchange = make_mpi_exchange(own, settings().ranks_per_node);
  FileRecord& record = file->record;
  record.amode = amode;
  record.mode = settings().mode;

  const auto real_start = Clock::now();
  const int code = real().open(comm, filename, amode, info, fh);
  const auto real_end = Clock::now();
  // MPIs agree on the outcome of an open, mostly. Where they do not, the file is not ours: a
  // collective call of Forebay's would wait for the rank that has no file.
  std::array<std::int64_t, 2> word{code == MPI_SUCCESS ? 1 : 0,
                                   settings().report_dir.empty() ? 0 : 1};
  if (file->exchange->rank() != 0) word[1] = 1;
  file->exchange->all_reduce(word, Reduce::min);
  if (word[0] == 0) return code;

  file->handle = *fh;
  file->reporting = word[1] != 0;
  record.path = posix_path(filename).value_or(filename);
  if (record.mode == Mode::engine) {
    make_shadow(*file, filename, info);
    record.times.add(CallClass::open, Clock::now() - start);
  } else {
    record.times.add(CallClass::open, real_end - real_start);
  }
  open_files().add(std::move(file));
  return MPI_SUCCESS;
}

/// Ends the shadow, keeping what the report tells of it. Collective.
void end_shadow(OpenFile& file) {
  ShadowFile& shadow = *file.shadow;
  file.record.hints = to_pairs(shadow.engine->hints_in_force());
  std::int64_t used = shadow.shared_pointer.used();
  file.exchange->all_reduce({&used, 1}, Reduce::max);  // Also: nobody is still using it.
  if (used != 0 && file.exchange->rank() == 0) shadow.shared_pointer.remove();
  file.shadow.reset();
}

}  // namespace

int wrapped_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info,
                 MPI_File* fh) noexcept {
  if (interception_depth > 0) return real().open(comm, filename, amode, info, fh);
  const Inside inside;
  MPI_Comm own = MPI_COMM_NULL;
  if (filename != nullptr && fh != nullptr) own = own_communicator(comm);
  if (own == MPI_COMM_NULL) return real().open(comm, filename, amode, info, fh);
  try {
    return open_tracked(own, comm, filename, amode, info, fh);
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  } catch (...) {
    return MPI_ERR_INTERN;
  }
}

int wrapped_close(MPI_File* fh) noexcept {
  if (interception_depth > 0 || fh == nullptr) return real().close(fh);
  const Inside inside;
  const auto file = open_files().remove(*fh);
  if (file == nullptr) return real().close(fh);
  int code = MPI_SUCCESS;
  try {
    {
      const MeasuredCall measured(file->record, CallClass::close);
      if (file->shadow != nullptr) end_shadow(*file);
      code = real().close(fh);
    }
    if (file->reporting) write_report(file->record, *file->exchange, settings().report_dir);
  } catch (const std::bad_alloc&) {
    code = MPI_ERR_NO_MEM;
  } catch (...) {
    code = MPI_ERR_INTERN;
  }
  return code;
}

}  // namespace forebay
