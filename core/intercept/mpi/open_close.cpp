#include "core/intercept/mpi/open_close.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/cache/segment_reserve.hpp"
#include "core/engine/collective/agreed_error.hpp"
#include "core/engine/collective/claims_server.hpp"
#include "core/engine/collective/exchange_protocol.hpp"
#include "core/engine/collective/file_handles.hpp"
#include "core/engine/collective/left_logs.hpp"
#include "core/intercept/mpi/declared_hints.hpp"
#include "core/intercept/mpi/error_class.hpp"
#include "core/intercept/mpi/exchange_cache.hpp"
#include "core/intercept/mpi/file_name.hpp"
#include "core/intercept/mpi/info_pairs.hpp"
#include "core/intercept/mpi/interception.hpp"
#include "core/intercept/mpi/open_file.hpp"
#include "core/intercept/mpi/real_mpi.hpp"
#include "core/intercept/mpi/unfinished_files.hpp"
#include "core/intercept/posix/later_fetch.hpp"
#include "core/storage/descriptor.hpp"
#include "core/storage/file.hpp"
#include "core/storage/layout.hpp"
#include "core/storage/process_age.hpp"

namespace forebay {
namespace {

using Clock = std::chrono::steady_clock;

/// While it lives, what the MPI opens is read ahead from when it reads: mostly we read by a
/// descriptor of our own.
class FetchedLater {
 public:
  FetchedLater() { tell(1); }
  ~FetchedLater() { tell(0); }
  FetchedLater(const FetchedLater&) = delete;
  FetchedLater& operator=(const FetchedLater&) = delete;

 private:
  static void tell(int is_on) {
    static auto* const fetch_later =
        reinterpret_cast<posix::FetchLater*>(::dlsym(RTLD_DEFAULT, posix::later_fetch_name));
    if (fetch_later != nullptr) fetch_later(is_on);
  }
};

/// Beside the data file, so that it is shared as the data file is. `id` keeps openings apart.
std::string shared_pointer_path(const std::string& path, std::int64_t id) {
  constexpr std::size_t most_of_name = 200;  // Of the 255 bytes that a name may have.
  const std::filesystem::path file(path);
  const std::string name = file.filename().string().substr(0, most_of_name);
  return (file.parent_path() / ("." + name + ".forebay-pointer-" + std::to_string(id))).string();
}

/// What ranks tell each other once each has tried to open the file: one reduction for everything,
/// because at open every round trip counts. The maximum over ranks decides.
struct OpenWord {
  enum Index {
    newest_protocol,
    oldest_protocol,  ///< Negative.
    no_real_file,
    unclear_name,
    no_own_file,
    few_descriptors,
    incoherent,
    others_write,
    unfinished,  ///< An earlier opening did not bring all of its bytes to the file.
    other_handles,
    end_of_file,
    reporting,
    declarations,
    id,
    count
  };
  std::array<std::int64_t, count> values{};

  std::int64_t& operator[](Index index) { return values[index]; }
};

/// Forebay's own descriptor of the file that the MPI opened at `path`; or none, and the reason is
/// in `word`. Writing into holes needs reading, so a write-only file is opened for both.
std::unique_ptr<StorageFile> try_storage(OpenFile& file, const std::optional<std::string>& path,
                                         OpenWord& word) {
  FileRecord& record = file.record;
  word[OpenWord::unclear_name] = !path;
  word[OpenWord::few_descriptors] = descriptors_run_short();
  if (!path || word[OpenWord::few_descriptors] != 0) return nullptr;
  const bool reading = (record.amode & MPI_MODE_RDONLY) != 0;
  auto opened =
      open_posix_file(*path, reading ? OpenMode::read_only : OpenMode::read_write, record.counters);
  word[OpenWord::no_own_file] = !opened;
  if (!opened) {
    record.notes.push_back(to_string(opened.error()));
    return nullptr;
  }
  StorageFile& storage = **opened;
  file.id = storage.id();
  // There only the MPI's locks make the hosts see each other's bytes.
  word[OpenWord::incoherent] =
      !file.exchange->on_one_host() && !coherent_between_hosts(file_system_name(storage.path()));
  return std::move(*opened);
}

/// `file`, which the MPI has opened at `path`, is one more handle of this process: no other one
/// holds anything back from now on.
Status enlist(OpenFile& file, const std::optional<std::string>& path) {
  if (!file.id && path) file.id = id_at(path->c_str());
  if (!file.id) return {};
  file.listed.emplace(FileHandles::of(*file.id));
  return file.listed->all()->end_caches();
}

/// An id that no other opening of the same file has: of this process and this moment.
std::int64_t opening_id() {
  const std::int64_t now = std::chrono::system_clock::now().time_since_epoch().count();
  return (now ^ (std::int64_t{getpid()} << 40)) & INT64_MAX;
}

/// Whether there are MPI_COMM_WORLD and MPI_COMM_SELF: not where MPI was started by sessions alone.
bool has_world() {
  int started = 0;
  PMPI_Initialized(&started);
  return started != 0;
}

/// Whether somebody may write to a file that is opened on `comm` of whom its ranks know nothing.
/// Where the whole program opens the file, on one host, each process sees what is written through
/// other handles too; but not what another thread does meanwhile.
bool others_may_write(MPI_Comm comm, const Exchange& exchange) {
  if (!exchange.on_one_host() || !has_world()) return true;
  int likeness = MPI_UNEQUAL;
  PMPI_Comm_compare(comm, MPI_COMM_WORLD, &likeness);
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);
  return likeness == MPI_UNEQUAL || parent != MPI_COMM_NULL || threads_call_at_once();
}

/// MPI_Finalize has begun: nobody comes again to wait for what goes on after a close.
bool is_last_moment = false;

/// What the report tells of the engine, as it stands. Before it is closed.
void note_engine(FileRecord& record, const CollectiveFile& engine) {
  record.hints = to_pairs(engine.hints_in_force());
  record.aggregators = engine.aggregators();
  record.engine_notes = engine.notes();
}

/// What waits in the cache for files that the program never closes goes to them, all before
/// anything else is done.
void close_unclosed(const std::vector<std::shared_ptr<OpenFile>>& files) {
  for (const auto& file : files) {
    if (file->shadow == nullptr) continue;
    CollectiveFile& engine = *file->shadow->engine;
    note_engine(file->record, engine);
    const Status closed = engine.close_together();
    if (!closed) std::fprintf(stderr, "forebay: %s\n", to_string(closed.error()).c_str());
    file->record.cache_notes = engine.own_notes();
  }
}

/// MPI_Finalize begins. All ranks still agree here on what becomes of files that the program never
/// closes; the report tells of them. HDF5, whose attribute was set before, is called after this,
/// and may then write to its files and close them: of these there is a second record.
void finish_unclosed() {
  is_last_moment = true;
  unfinished_files().finish_all();
  unfinished_files().abandon_all();
  auto files = open_files().all();
  // Handles are in no order that ranks share.
  std::ranges::sort(files, {}, [](const auto& file) { return file->record.opening; });
  close_unclosed(files);
  close_segment_reserves();
  // Ranks of other hosts still finish what this one's process keeps the claims of.
  ClaimsServer::await_retired();
  for (const auto& file : files) {
    if (file->reporting) write_report(file->record, *file->exchange, settings().report_dir);
  }
}

/// The attribute that is set again is not that with which MPI_Finalize begins.
std::atomic<bool> is_set_again = false;

int attribute_is_deleted(MPI_Comm /*comm*/, int /*keyval*/, void* /*value*/,
                         void* /*extra*/) noexcept {
  if (is_set_again.load()) return MPI_SUCCESS;
  try {
    finish_unclosed();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "forebay: files that were not closed: %s\n", error.what());
  }
  return MPI_SUCCESS;
}

/// MPI_Finalize takes the attributes of MPI_COMM_SELF away first, the last one that was set before
/// the others (MPI 4.0, section 11.2.4). A library that closes its files then (HDF5) has set its
/// own before it opens the first, on each of the file's ranks; ours is set anew with every file, so
/// that it comes first on all of them.
void finish_unclosed_at_finalize() {
  if (!has_world()) return;
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  static int keyval = MPI_KEYVAL_INVALID;
  if (keyval == MPI_KEYVAL_INVALID) {
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, attribute_is_deleted, &keyval, nullptr);
  } else {
    is_set_again = true;
    PMPI_Comm_delete_attr(MPI_COMM_SELF, keyval);
    is_set_again = false;
  }
  PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr);
}

/// Gives `file` its shadow, or the reason why it has none. `declared`: as far as the ranks know
/// already. Collective.
void make_shadow(OpenFile& file, OpenWord& word, const std::vector<std::uint8_t>& declarations,
                 DeclaredHints declared, std::unique_ptr<StorageFile> storage) {
  FileRecord& record = file.record;
  if (word[OpenWord::newest_protocol] != -word[OpenWord::oldest_protocol]) {
    file.pass_reason = "the ranks run different versions of Forebay";
    return;
  }
  if (word[OpenWord::declarations] != 0) {
    declared = declare_at_open(*file.exchange, record.path, declarations);
  }
  record.hint_problems = std::move(declared.problems);
  if (declared.hints.passthrough) {
    file.pass_reason = "hint forebay=disable";
  } else if ((record.amode & MPI_MODE_SEQUENTIAL) != 0) {
    file.pass_reason = "MPI_MODE_SEQUENTIAL";
  } else if (word[OpenWord::unclear_name] != 0) {
    file.pass_reason = "a colon in the name leaves open which file it means";
  } else if (word[OpenWord::few_descriptors] != 0) {
    file.pass_reason = "few file descriptors are left";
  } else if (word[OpenWord::no_own_file] != 0) {
    file.pass_reason = "Forebay could not open the file itself";
  } else if (word[OpenWord::incoherent] != 0) {
    file.pass_reason = "several hosts on a file system that needs locks";
  }
  if (!file.pass_reason.empty()) return;

  // Who only reads has nothing to hold back.
  if ((record.amode & MPI_MODE_RDONLY) != 0) declared.hints.cache.reset();
  if (word[OpenWord::other_handles] != 0 && declared.hints.cache.value_or(false)) {
    record.notes.emplace_back(
        "no write-behind cache: the program has the file open by another handle, too");
    declared.hints.cache.reset();
  }
  record.layout = storage->layout();
  const std::string pointer_path = shared_pointer_path(storage->path(), word[OpenWord::id]);
  // Ranks of one node see one /dev/shm (mpi_exchange.cpp).
  const std::string in_memory = file.exchange->on_one_host()
                                    ? shared_pointer_path("/dev/shm/forebay", word[OpenWord::id])
                                    : std::string();
  const Writers writers = word[OpenWord::others_write] == 0 ? Writers::ranks : Writers::others;
  if (declared.hints.cache.value_or(false) && !is_last_moment) keep_segments();
  auto engine = CollectiveFile::open(file.exchange, std::move(storage), declared.hints,
                                     record.counters, steady_nanoseconds(), writers,
                                     file.listed ? file.listed->all() : nullptr);
  file.shadow = std::make_unique<ShadowFile>(std::move(engine), datatype_reader(), declared.hints,
                                             pointer_path, in_memory, word[OpenWord::end_of_file]);
}

/// Waits until nothing of `filename`, nor of its family, is on its way after an early close, and
/// no other handle of this process holds anything of it back. Before the MPI opens it, which may
/// look for its end.
Status bring_to_file(const char* filename) {
  const bool under_way = !unfinished_files().empty();
  if (!under_way && !FileHandles::any_caches()) return {};
  const std::string path = declared_path(filename);
  const Status finished = under_way ? unfinished_files().finish_family(path) : Status{};
  const auto id = id_at(path.c_str());
  const Status ended = id ? FileHandles::of(*id)->end_caches() : Status{};
  return finished ? ended : finished;
}

/// Opens a file whose ranks have no communicator of ours to talk over: each knows of itself alone.
int open_crowded(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh,
                 Opening opening) {
  auto file = std::make_shared<OpenFile>();
  file->exchange = std::move(opening.exchange);
  FileRecord& record = file->record;
  record.amode = amode;
  record.mode = settings().mode;
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &record.ranks);
  file->reporting = rank == 0 && !settings().report_dir.empty();

  std::optional<HarmlessInfo> harmless;
  if (info != MPI_INFO_NULL && record.mode == Mode::engine) harmless.emplace(pairs_of(info));
  const int code = real().open(comm, filename, amode, harmless ? harmless->get() : info, fh);
  if (code != MPI_SUCCESS) return code;
  file->handle = *fh;
  record.path = opened_path(filename).value_or(filename);
  record.notes.emplace_back("only the calls of rank 0 are counted here");
  if (record.mode == Mode::engine) {
    file->pass_reason = "as many files are open as Forebay has communicators for";
    const Status enlisted = enlist(*file, opened_path(filename));
    if (!enlisted) record.notes.push_back(to_string(enlisted.error()));
  }
  record.times.add(CallClass::open, Clock::now() - opening.begun);
  open_files().add(std::move(file));
  return MPI_SUCCESS;
}

/// Says at once where logs of it may be.
void mark_as_cached(const OpenFile& file) {
  const bool is_cached = file.shadow != nullptr && file.shadow->engine->holds_back();
  if (!is_cached || !file.reporting || file.exchange->rank() != 0) return;
  write_cached_mark(file.record, file.shadow->engine->hints_in_force().cache_path,
                    settings().report_dir);
}

int open_tracked(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
  const NoWaits none;  // What could not be finished is told below.
  Status brought = bring_to_file(filename);
  Opening opening = begin_opening(comm);
  if (opening.exchange == nullptr) return real().open(comm, filename, amode, info, fh);
  if (opening.crowded) return open_crowded(comm, filename, amode, info, fh, std::move(opening));
  auto file = std::make_shared<OpenFile>();
  file->exchange = std::move(opening.exchange);
  FileRecord& record = file->record;
  record.amode = amode;
  record.mode = settings().mode;
  record.ranks = file->exchange->size();
  record.nodes = file->exchange->nodes().nodes();

  std::vector<std::uint8_t> declarations;
  if (file->exchange->rank() == 0) declarations = pack_declarations(info);
  const bool declares = opening.environment_declares && record.mode == Mode::engine;
  DeclaredHints declared;
  if (declares) {  // Before the MPI opens the file, which it may have to create by them.
    declared = declare_at_open(*file->exchange, declared_path(filename), declarations);
  }
  std::optional<HarmlessInfo> harmless;
  if (declares && (amode & MPI_MODE_CREATE) != 0) {
    harmless.emplace(pairs_for_creation(pairs_of(info), declared));
  } else if (info != MPI_INFO_NULL && record.mode == Mode::engine) {
    harmless.emplace(pairs_of(info));
  }
  const auto real_start = Clock::now();
  int code = MPI_SUCCESS;
  {
    const FetchedLater later;
    code = real().open(comm, filename, amode, harmless ? harmless->get() : info, fh);
  }
  const auto real_end = Clock::now();

  const auto path = opened_path(filename);
  record.path = path.value_or(filename);
  OpenWord word;
  word[OpenWord::newest_protocol] = exchange_protocol_version;
  word[OpenWord::oldest_protocol] = -exchange_protocol_version;
  word[OpenWord::no_real_file] = code != MPI_SUCCESS;
  if (file->exchange->rank() == 0) {
    word[OpenWord::reporting] = !settings().report_dir.empty();
    word[OpenWord::id] = opening_id();
    word[OpenWord::declarations] = !declares && !declarations.empty();
  }
  std::unique_ptr<StorageFile> storage;
  if (code == MPI_SUCCESS && record.mode == Mode::engine) {
    storage = try_storage(*file, path, word);
    const Status enlisted = enlist(*file, path);
    if (brought) brought = enlisted;
    word[OpenWord::other_handles] = file->listed && !file->listed->is_only_one();
    // Where an appending program starts; some rank may not see the latest size yet.
    if (storage != nullptr && (amode & MPI_MODE_APPEND) != 0) {
      word[OpenWord::end_of_file] = storage->size().value_or(0);
    }
    word[OpenWord::others_write] =
        (amode & MPI_MODE_RDONLY) != 0 || others_may_write(comm, *file->exchange);
  }
  const Error unfinished = brought ? Error{} : brought.error();
  word[OpenWord::unfinished] = pack(unfinished);
  file->exchange->all_reduce(word.values, Reduce::max);
  // MPIs agree on the outcome of an open, mostly. Where they do not, the file is not ours: a
  // collective call of Forebay's would wait for the rank that has no file.
  if (word[OpenWord::no_real_file] != 0) return code;
  if (word[OpenWord::unfinished] != 0) {
    real().close(fh);
    return error_class(agreed_error(word[OpenWord::unfinished], unfinished).kind);
  }

  // No rank holds anything back for another handle any more, and none writes before all have agreed
  // on how.
  if (record.mode == Mode::engine && file->exchange->rank() == 0 && path) {
    static const std::int64_t started = started_unix_s();
    std::string warning = warn_of_left_logs(*path, (amode & MPI_MODE_RDONLY) == 0, started);
    if (!warning.empty()) {
      show(*file->exchange, {warning}, record.path);
      record.notes.push_back(std::move(warning));
    }
  }
  file->handle = *fh;
  file->reporting = word[OpenWord::reporting] != 0;
  record.opening = word[OpenWord::id];
  if (record.mode == Mode::engine) {
    make_shadow(*file, word, declarations, std::move(declared), std::move(storage));
    mark_as_cached(*file);
    record.times.add(CallClass::open, Clock::now() - opening.begun);
  } else {
    record.times.add(CallClass::open, real_end - real_start);
  }
  if (file->reporting || file->shadow != nullptr) finish_unclosed_at_finalize();
  open_files().add(std::move(file));
  return MPI_SUCCESS;
}

/// Ends the shadow, keeping what the report tells of it. Returns the MPI error of writes that not
/// all ranks have heard of yet. `held_back`: what goes on to the file after the close. Collective.
int end_shadow(OpenFile& file, std::unique_ptr<HeldBack>& held_back) {
  ShadowFile& shadow = *file.shadow;
  note_engine(file.record, *shadow.engine);
  Status closed;
  if ((file.record.amode & MPI_MODE_DELETE_ON_CLOSE) != 0) {
    closed = shadow.engine->close(true);
  } else if (is_last_moment) {
    closed = shadow.engine->close_together();
  } else if (auto early = shadow.engine->close_early()) {
    held_back = std::move(*early);
  } else {
    closed = tl::unexpected(early.error());
  }
  file.record.cache_notes = shadow.engine->own_notes();
  const Error untold = shadow.engine->untold_error();
  const Error mine = !closed && closed.error().kind > untold.kind ? closed.error() : untold;
  std::array<std::int64_t, 2> word{shadow.shared_pointer.used(), pack(mine)};
  file.exchange->all_reduce(word, Reduce::max);  // Also: nobody is still using the pointer.
  if (word[0] != 0 && file.exchange->rank() == 0) shadow.shared_pointer.remove();
  file.shadow.reset();
  return word[1] == 0 ? MPI_SUCCESS : file.code_of(agreed_error(word[1], mine));
}

}  // namespace

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

int intercepted_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info,
                     MPI_File* fh) noexcept {
  if (interception_depth > 0 || settings().mode == Mode::off)
    return real().open(comm, filename, amode, info, fh);
  const Inside inside;
  if (filename == nullptr || fh == nullptr) return real().open(comm, filename, amode, info, fh);
  try {
    return open_tracked(comm, filename, amode, info, fh);
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  } catch (...) {
    return MPI_ERR_INTERN;
  }
}

int intercepted_close(MPI_File* fh) noexcept {
  if (interception_depth > 0 || fh == nullptr) return real().close(fh);
  const Inside inside;
  const auto file = open_files().remove(*fh);
  if (file == nullptr) return real().close(fh);
  int code = MPI_SUCCESS;
  try {
    std::unique_ptr<HeldBack> held_back;
    {
      const MeasuredCall measured(file->record, CallClass::close);
      if (file->shadow != nullptr) code = end_shadow(*file, held_back);
      const int closed = real().close(fh);
      if (code == MPI_SUCCESS) code = closed;
    }
    if (held_back != nullptr) held_back->start();
    if (file->reporting) write_report(file->record, *file->exchange, settings().report_dir);
    file->exchange.reset();  // The next file's.
    if (held_back != nullptr) unfinished_files().add(file, std::move(held_back));
  } catch (const std::bad_alloc&) {
    code = MPI_ERR_NO_MEM;
  } catch (...) {
    code = MPI_ERR_INTERN;
  }
  return code;
}

}  // namespace forebay
