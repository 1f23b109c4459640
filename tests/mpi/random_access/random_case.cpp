// A case from the outside: files, sessions, views, sizes, queries. Data calls are in data_step.cpp.
#include "tests/mpi/random_access/random_case.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace random_access {
namespace {

constexpr std::int64_t prefill_bytes_max = 30000;

std::vector<std::uint8_t> content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Hints that users set, sensible or not; what they change may never be seen in the data.
MPI_Info random_hints(Random& random) {
  static constexpr std::array<std::array<const char*, 2>, 12> hints = {{
      {"cb_nodes", "1"},
      {"cb_nodes", "2"},
      {"cb_buffer_size", "4096"},
      {"cb_buffer_size", "65536"},
      {"romio_cb_write", "enable"},
      {"romio_cb_write", "disable"},
      {"romio_cb_read", "enable"},
      {"romio_cb_read", "disable"},
      {"romio_ds_write", "enable"},
      {"romio_ds_read", "disable"},
      {"ind_wr_buffer_size", "8192"},
      {"ind_rd_buffer_size", "8192"},
  }};
  if (!random.percent(40)) return MPI_INFO_NULL;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  const std::int64_t count = random.between(1, 3);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& hint = hints[static_cast<std::size_t>(random.below(hints.size()))];
    MPI_Info_set(info, hint[0], hint[1]);
  }
  return info;
}

void free_info(MPI_Info info) {
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
}

}  // namespace

RandomCase::RandomCase(std::uint64_t seed, const Options& options)
    : random_(seed),
      seed_(seed),
      path_(options.directory + "/case" + std::to_string(seed)),
      talkative_(options.talkative),
      mild_(seed % 2 == 0),
      seen_(static_cast<int>(seed), 0),
      model_(options.open_holes) {
  int world_rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  // Now and then the file's ranks are in another order than the processes.
  MPI_Comm_split(MPI_COMM_WORLD, 0, random_.percent(20) ? -world_rank : world_rank, &comm_);
  MPI_Comm_rank(comm_, &rank_);
  seen_ = Observations(static_cast<int>(seed), rank_);
  positions_.resize(static_cast<std::size_t>(ranks_));
}

RandomCase::~RandomCase() { MPI_Comm_free(&comm_); }

void RandomCase::run() {
  if (random_.percent(60)) prefill();
  const std::int64_t sessions = random_.between(1, 3);
  for (std::int64_t i = 0; i < sessions; ++i) session(i + 1 == sessions);
  seen_.print(comm_);
}

void RandomCase::prefill() {
  model_.resize(random_.between(1, prefill_bytes_max));
  for (std::int64_t i = 0; i < model_.size(); ++i) {
    model_.write(0, i, static_cast<std::uint8_t>(mix(seed_ + static_cast<std::uint64_t>(i))));
  }
  if (rank_ == 0) {
    std::ofstream out(path_, std::ios::binary);
    out.write(reinterpret_cast<const char*>(model_.bytes().data()), model_.size());
  }
  MPI_Barrier(comm_);
}

void RandomCase::session(bool last) {
  open(last);
  const std::int64_t steps = random_.between(3, 10);
  for (std::int64_t i = 0; i < steps; ++i) step();
  close();
}

void RandomCase::open(bool last) {
  ++step_;
  const std::int64_t choice = random_.below(10);
  amode_ = choice < 7 || model_.size() == 0 ? MPI_MODE_RDWR | MPI_MODE_CREATE
           : choice == 7                    ? MPI_MODE_RDONLY
                                            : MPI_MODE_WRONLY | MPI_MODE_CREATE;
  if (writable() && random_.percent(15)) amode_ |= MPI_MODE_APPEND;
  if (random_.percent(15)) amode_ |= MPI_MODE_UNIQUE_OPEN;
  if (last && random_.percent(10)) amode_ |= MPI_MODE_DELETE_ON_CLOSE;
  model_.synchronise();
  views_ = byte_views(ranks_);
  const std::int64_t start = (amode_ & MPI_MODE_APPEND) != 0 ? model_.size() : 0;
  std::fill(positions_.begin(), positions_.end(), start);
  shared_position_ = start;
  atomic_ = false;

  const MPI_Info info = random_hints(random_);
  const int code = MPI_File_open(comm_, path_.c_str(), amode_, info, &file_);
  free_info(info);
  int amode = 0;
  MPI_Offset size = 0;
  MPI_File_get_amode(file_, &amode);
  MPI_File_get_size(file_, &size);
  seen_.begin(step_, "open");
  seen_.expect_class("code", code, MPI_SUCCESS);
  seen_.expect("amode", amode, amode_);
  seen_.expect("size", size, model_.size());
  observe_pointers();
  seen_.end();
}

void RandomCase::close() {
  ++step_;
  const bool deleted = (amode_ & MPI_MODE_DELETE_ON_CLOSE) != 0;
  const int code = MPI_File_close(&file_);
  MPI_Barrier(comm_);
  seen_.begin(step_, "close");
  seen_.expect_class("code", code, MPI_SUCCESS);
  seen_.expect("null", file_ == MPI_FILE_NULL, 1);
  if (rank_ == 0) {
    seen_.expect("exists", std::filesystem::exists(path_), !deleted);
    if (!deleted) {
      auto bytes = content(path_);
      for (std::size_t i = 0; i < std::min(bytes.size(), model_.bytes().size()); ++i) {
        const auto offset = static_cast<std::int64_t>(i);
        if (!model_.defined(offset)) bytes[i] = model_.byte(offset);
      }
      seen_.expect_bytes("file", bytes, model_.bytes());
    }
  }
  seen_.end();
  MPI_Barrier(comm_);
}

void RandomCase::step() {
  ++step_;
  const std::int64_t choice = random_.below(100);
  if (choice < 24)
    set_view();
  else if (choice < 82)
    data_call();
  else if (choice < 90)
    query();
  else if (choice < 94)
    resize_file();
  else if (choice < 97)
    atomicity();
  else
    error_probe();
}

bool RandomCase::agreed(bool mine) const {
  int all = mine;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_LAND, comm_);
  return all != 0;
}

void RandomCase::tell(const std::string& text) const {
  if (!talkative_) return;
  std::printf("# step %d rank %d %s\n", step_, rank_, text.c_str());
  std::fflush(stdout);
}

void RandomCase::set_view() {
  const Views views = random_views(random_, ranks_);
  const MPI_Info info = random_hints(random_);
  const ViewModel& mine = views.of_rank[static_cast<std::size_t>(rank_)];
  tell("view " + std::to_string(mine.displacement) + " " + mine.etype.text + " : " +
       mine.filetype.text);
  seen_.begin(step_, "set_view");
  if (!agreed(type_agrees(mine.etype) && type_agrees(mine.filetype))) {
    seen_.expect("type_agrees", 0, 1);
    seen_.end();
    free_info(info);
    return;
  }
  if (!atomic_ && writable()) synchronise();
  MPI_Datatype etype = mine.etype.make();
  MPI_Datatype filetype = mine.filetype.make();
  MPI_Type_commit(&etype);
  MPI_Type_commit(&filetype);
  const int code = MPI_File_set_view(file_, mine.displacement, etype, filetype, "native", info);
  // The file keeps what it needs.
  MPI_Type_free(&etype);
  MPI_Type_free(&filetype);
  free_info(info);
  seen_.expect_class("code", code, MPI_SUCCESS);
  if (code == MPI_SUCCESS) {
    views_ = views;
    std::fill(positions_.begin(), positions_.end(), 0);
    shared_position_ = 0;
  }
  observe_pointers();
  seen_.end();
}

void RandomCase::synchronise() {
  if (!writable()) return;
  if (atomic_) {
    MPI_Barrier(comm_);
  } else {
    MPI_File_sync(file_);
    MPI_Barrier(comm_);
    MPI_File_sync(file_);
  }
  model_.synchronise();
}

void RandomCase::resize_file() {
  if (!writable()) return;
  synchronise();
  const bool preallocate = !mild_ && random_.percent(40);
  const std::int64_t wanted = random_.between(0, std::max<std::int64_t>(2 * model_.size(), 1000));
  const std::int64_t size = std::min<std::int64_t>(wanted, 60000);
  tell((preallocate ? "preallocate " : "set_size ") + std::to_string(size));
  const int code = preallocate ? MPI_File_preallocate(file_, size) : MPI_File_set_size(file_, size);
  if (preallocate)
    model_.preallocate(size);
  else
    model_.resize(size);
  synchronise();
  MPI_Offset now = 0;
  MPI_File_get_size(file_, &now);
  seen_.begin(step_, preallocate ? "preallocate" : "set_size");
  seen_.expect_class("code", code, MPI_SUCCESS);
  seen_.expect("size", now, model_.size());
  seen_.end();
  MPI_Barrier(comm_);
}

void RandomCase::atomicity() {
  if (!writable()) return;
  synchronise();
  atomic_ = !atomic_;
  const int code = MPI_File_set_atomicity(file_, atomic_);
  int flag = -1;
  MPI_File_get_atomicity(file_, &flag);
  seen_.begin(step_, "set_atomicity");
  seen_.expect_class("code", code, MPI_SUCCESS);
  seen_.expect("atomic", flag, atomic_);
  seen_.end();
}

void RandomCase::observe_pointers() {
  const ViewModel& mine = view(rank_);
  MPI_Offset position = -1;
  MPI_File_get_position(file_, &position);
  seen_.expect("position", position,
               positions_[static_cast<std::size_t>(rank_)] / mine.etype.size());
  if (!views_.uniform) return;
  MPI_Offset shared = -1;
  MPI_File_get_position_shared(file_, &shared);
  seen_.expect("shared_position", shared, shared_position_ / mine.etype.size());
  MPI_Barrier(comm_);
}

void RandomCase::query() {
  synchronise();
  const ViewModel& mine = view(rank_);
  const std::int64_t offset = random_.between(0, 500);
  seen_.begin(step_, "query");
  MPI_Offset size = -1;
  MPI_File_get_size(file_, &size);
  seen_.expect("size", size, model_.size());
  if (mine.filetype.size() > 0) {
    MPI_Offset byte = -1;
    MPI_File_get_byte_offset(file_, offset, &byte);
    seen_.expect("byte_offset", byte, mine.offset(offset * mine.etype.size()));
  }
  MPI_Offset displacement = -1;
  MPI_Datatype etype = MPI_DATATYPE_NULL, filetype = MPI_DATATYPE_NULL;
  std::array<char, MPI_MAX_DATAREP_STRING> representation{};
  MPI_File_get_view(file_, &displacement, &etype, &filetype, representation.data());
  MPI_Aint lower = 0, extent = 0;
  int bytes = 0;
  MPI_Type_size(filetype, &bytes);
  MPI_Type_get_extent(filetype, &lower, &extent);
  seen_.expect("displacement", displacement, mine.displacement);
  seen_.expect("filetype_bytes", bytes, mine.filetype.size());
  seen_.expect("filetype_lower", lower, mine.filetype.lower);
  seen_.expect("filetype_extent", extent, mine.filetype.extent());
  MPI_Type_size(etype, &bytes);
  MPI_Aint etype_extent = 0;
  MPI_File_get_type_extent(file_, etype, &etype_extent);
  seen_.expect("etype_bytes", bytes, mine.etype.size());
  seen_.expect("etype_extent", etype_extent, mine.etype.extent());
  seen_.expect("native", std::string(representation.data()) == "native", 1);
  for (MPI_Datatype* type : {&etype, &filetype}) {
    int integers = 0, addresses = 0, types = 0, combiner = 0;
    MPI_Type_get_envelope(*type, &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED) MPI_Type_free(type);
  }
  observe_pointers();
  seen_.end();
}

void RandomCase::error_probe() {
  synchronise();
  int byte = 0;
  MPI_Status status;
  seen_.begin(step_, "errors");
  seen_.note_class("seek_negative", MPI_File_seek(file_, -1, MPI_SEEK_SET));
  seen_.note_class("seek_whence", MPI_File_seek(file_, 0, 12345));
  if (readable()) {
    seen_.note_class("read_at_negative", MPI_File_read_at(file_, -1, &byte, 1, MPI_BYTE, &status));
    seen_.note_class("read_null_type",
                     MPI_File_read_at(file_, 0, &byte, 1, MPI_DATATYPE_NULL, &status));
  } else {
    seen_.note_class("read_write_only", MPI_File_read_at(file_, 0, &byte, 1, MPI_BYTE, &status));
  }
  if (writable()) {
    seen_.note_class("write_count", MPI_File_write_at(file_, 0, &byte, -1, MPI_BYTE, &status));
    seen_.note_class("set_size_negative", MPI_File_set_size(file_, -1));
  } else {
    seen_.note_class("write_read_only", MPI_File_write_at(file_, 0, &byte, 1, MPI_BYTE, &status));
  }
  observe_pointers();
  seen_.end();
}

}  // namespace random_access
