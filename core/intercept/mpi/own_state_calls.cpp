// The calls that read or change a file's view, pointers, hints and consistency.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "core/intercept/mpi/declared_hints.hpp"
#include "core/intercept/mpi/info_pairs.hpp"
#include "core/intercept/mpi/own_calls.hpp"
#include "core/intercept/mpi/real_mpi.hpp"

namespace forebay::own {
namespace {

bool is_native(const char* representation) {
  return std::strcmp(representation, "native") == 0 || std::strcmp(representation, "NATIVE") == 0;
}

/// A view as MPI_File_set_view asks for it, or an MPI error code.
tl::expected<FileView, int> read_view(const ShadowFile& shadow, MPI_Offset displacement,
                                      MPI_Datatype etype, MPI_Datatype filetype,
                                      const char* representation) {
  if (displacement < 0) return tl::unexpected(MPI_ERR_ARG);
  if (const auto element = shadow.datatypes->read(etype); !element) {
    return tl::unexpected(element.error());
  }
  const auto type = shadow.datatypes->read(filetype);
  if (!type) return tl::unexpected(type.error());
  FileView view(displacement, etype, filetype, representation, (*type)->tiled(displacement));
  const Bytes size = view.tiled().tree.size();
  if (size != 0 && (view.etype_size() == 0 || size % view.etype_size() != 0)) {
    return tl::unexpected(MPI_ERR_ARG);
  }
  return view;
}

/// A view that the engine can work with: offsets ascend, within a tile and from tile to tile. MPI
/// allows others for reading.
bool is_walkable(const TiledTree& tiled) {
  return tiled.tree.size() == 0 ||
         (tiled.extent > 0 && tiled.tree.lower() >= 0 && tiled.monotone());
}

/// What ranks tell each other about a new view; the maximum over ranks decides.
struct ViewFlags {
  /// error_class: of this rank's arguments, MPI_SUCCESS (0) if they are right.
  enum Index {
    error_class,
    foreign_representation,
    not_walkable,
    pointer_used,
    hints_given,
    sieving,  ///< The engine's vote.
    count
  };
  std::array<std::int64_t, count> flags{};

  bool operator[](Index index) const { return flags[index] != 0; }
  void agree(Exchange& exchange) { exchange.all_reduce(flags, Reduce::max); }
};

/// Takes over the hints that rank 0 gives; `info` may be MPI_INFO_NULL. The MPI gets rank 0's too,
/// on every rank: ROMIO's ranks wait for each other where only some have a hint. Returns the MPI's
/// answer. Collective.
int adopt_info(OpenFile& file, MPI_Info info) {
  ShadowFile& shadow = *file.shadow;
  DeclaredHints declared = declare_later(*file.exchange, file.record.path, shadow.hints, info);
  const int code = real().set_info(file.handle, HarmlessInfo(declared.given).get());
  shadow.hints = declared.hints;
  auto& problems = file.record.hint_problems;
  problems.insert(problems.end(), declared.problems.begin(), declared.problems.end());
  const auto report = [&](const std::string& problem) {
    if (std::ranges::count(problems, problem) > 0) return;
    problems.push_back(problem);
    show(*file.exchange, {problem}, file.record.path);
  };
  const LateHints late = shadow.engine->set_hints(shadow.hints);
  if (late.aggregators) {
    report(
        "MPI_Info: data has gone through aggregators already, so their number and buffers stay; "
        "give cb_nodes, cb_config_list and cb_buffer_size when the file is opened");
  }
  if (late.cache) {
    report(
        "MPI_Info: the write-behind cache stays as it was when the file was opened; give "
        "forebay_cache, what begins with forebay_cache_ or e10_cache, and ind_wr_buffer_size then");
  }
  return code;
}

void remove_key(MPI_Info info, const std::string& key) {
  int length = 0, present = 0;
  PMPI_Info_get_valuelen(info, key.c_str(), &length, &present);
  if (present != 0) PMPI_Info_delete(info, key.c_str());
}

/// Puts both file pointers to the start of a new view. No rank leaves before the shared one is
/// there. `pointer_used` says whether any rank has used it, ever. Collective.
Status reset_pointers(OpenFile& file, bool pointer_used) {
  ShadowFile& shadow = *file.shadow;
  {
    const std::lock_guard lock(shadow.position_mutex);
    shadow.position = 0;
  }
  Status reset;
  if (pointer_used) {
    if (file.exchange->rank() == 0) reset = shadow.shared_pointer.set(0);
    file.exchange->barrier();
  }
  return reset;
}

/// Bytes in the file, with what the cache holds back, or an MPI error code.
tl::expected<MPI_Offset, int> size_of(OpenFile& file) {
  if (!file.shadow->engine->holds_back()) {
    MPI_Offset size = 0;
    const int code = real().get_size(file.handle, &size);
    if (code != MPI_SUCCESS) return tl::unexpected(code);
    return size;
  }
  const Result<Bytes> size = file.shadow->engine->storage().size();
  if (!size) return tl::unexpected(file.code_of(size.error()));
  return *size;
}

/// The position that a seek means; none where the standard forbids it.
tl::expected<Bytes, int> seek_target(OpenFile& file, MPI_Offset offset, int whence, Bytes current) {
  const FileView& view = file.shadow->view;
  const auto distance = view.position_of(offset);
  if (!distance) return tl::unexpected(MPI_ERR_ARG);
  Bytes base = 0;
  if (whence == MPI_SEEK_CUR) {
    base = current;
  } else if (whence == MPI_SEEK_END) {
    const auto size = size_of(file);
    if (!size) return tl::unexpected(size.error());
    base = view.end_position(*size);
  } else if (whence != MPI_SEEK_SET) {
    return tl::unexpected(MPI_ERR_ARG);
  }
  Bytes target = 0;
  if (__builtin_add_overflow(base, *distance, &target) || target < 0) {
    return tl::unexpected(MPI_ERR_ARG);
  }
  return target;
}

/// Lets rank 0 make `change` to the storage, if all ranks ask for the same valid size. Collective.
template <typename Change>
int change_size(OpenFile& file, MPI_Offset size, Change&& change) {
  const std::int64_t asked = std::max<MPI_Offset>(size, -1);
  const Status settled = file.shadow->engine->flush();
  std::array<std::int64_t, 3> word{asked, -asked,
                                   settled ? MPI_SUCCESS : file.code_of(settled.error())};
  file.exchange->all_reduce(word, Reduce::max);
  const auto [highest, negated_lowest, unsettled] = word;
  std::int64_t code = unsettled;
  if (code != MPI_SUCCESS) {
    // What is still to come would meet another size.
  } else if ((file.record.amode & MPI_MODE_RDONLY) != 0) {
    code = MPI_ERR_READ_ONLY;
  } else if (highest != -negated_lowest || size < 0) {
    code = MPI_ERR_ARG;
  } else if (file.exchange->rank() == 0) {
    const Status changed = change(file.shadow->engine->storage());
    if (!changed) code = file.code_of(changed.error());
  }
  file.exchange->all_reduce({&code, 1}, Reduce::max);
  return file.raise(static_cast<int>(code));
}

}  // namespace

int set_view(OpenFile& file, MPI_Offset disp, MPI_Datatype etype, MPI_Datatype filetype,
             const char* datarep, MPI_Info info) {
  ShadowFile& shadow = *file.shadow;
  int code = MPI_SUCCESS;
  FileView view;
  ViewFlags word;
  if (datarep == nullptr || std::strlen(datarep) >= MPI_MAX_DATAREP_STRING) {
    code = MPI_ERR_ARG;
  } else if (shadow.split) {
    code = MPI_ERR_IO;
  } else if (!is_native(datarep)) {
    word.flags[ViewFlags::foreign_representation] = 1;
  } else if (auto wanted = read_view(shadow, disp, etype, filetype, datarep)) {
    view = std::move(*wanted);
    word.flags[ViewFlags::not_walkable] = !is_walkable(view.tiled());
    if (is_walkable(view.tiled())) {
      word.flags[ViewFlags::sieving] = shadow.engine->vote_on_sieving(view.tiled());
    }
  } else {
    code = wanted.error();
  }
  if (code != MPI_SUCCESS) {
    int own_class = MPI_ERR_OTHER;
    PMPI_Error_class(code, &own_class);
    word.flags[ViewFlags::error_class] = own_class;
  }
  word.flags[ViewFlags::pointer_used] = shadow.shared_pointer.used();
  word.flags[ViewFlags::hints_given] = info != MPI_INFO_NULL;
  word.agree(*file.exchange);

  // One rank's bad argument leaves every rank with the view it had, and none may think otherwise.
  if (word[ViewFlags::error_class]) {
    const auto of_others = static_cast<int>(word.flags[ViewFlags::error_class]);
    return file.raise(code != MPI_SUCCESS ? code : of_others);
  }

  if (word[ViewFlags::foreign_representation] || word[ViewFlags::not_walkable]) {
    const std::string_view pass_reason = word[ViewFlags::foreign_representation]
                                             ? "data representation other than native"
                                             : "file view whose offsets do not ascend";
    const Status settled = shadow.engine->hold_nothing_back(std::string(pass_reason));
    std::int64_t unsettled = settled ? MPI_SUCCESS : file.code_of(settled.error());
    file.exchange->all_reduce({&unsettled, 1}, Reduce::max);
    if (unsettled != MPI_SUCCESS) return file.raise(static_cast<int>(unsettled));
    const int real_code = real().set_view(file.handle, disp, etype, filetype, datarep, info);
    std::int64_t failed = real_code != MPI_SUCCESS;
    file.exchange->all_reduce({&failed, 1}, Reduce::max);
    if (failed != 0) return real_code;  // Raised by the MPI already.
    shadow.pass_reason = pass_reason;
    file.record.count_passed_through(shadow.pass_reason);
    return MPI_SUCCESS;
  }
  if (shadow.passes_through()) {
    // The real file goes back to the view in which it serves a shadow.
    real().set_view(file.handle, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    shadow.pass_reason = {};
  }
  shadow.view = std::move(view);
  shadow.engine->view_changed(word.flags[ViewFlags::sieving]);
  if (word[ViewFlags::hints_given]) (void)adopt_info(file, info);
  const Status reset = reset_pointers(file, word[ViewFlags::pointer_used]);
  return reset ? MPI_SUCCESS : file.raise(file.code_of(reset.error()));
}

int get_view(OpenFile& file, MPI_Offset* disp, MPI_Datatype* etype, MPI_Datatype* filetype,
             char* datarep) {
  if (disp == nullptr || etype == nullptr || filetype == nullptr || datarep == nullptr) {
    return file.raise(MPI_ERR_ARG);
  }
  file.shadow->view.tell(disp, etype, filetype, datarep);
  return MPI_SUCCESS;
}

int seek(OpenFile& file, MPI_Offset offset, int whence) {
  ShadowFile& shadow = *file.shadow;
  const std::lock_guard lock(shadow.position_mutex);
  const auto target = seek_target(file, offset, whence, shadow.position);
  if (!target) return file.raise(target.error());
  shadow.position = *target;
  return MPI_SUCCESS;
}

int get_position(OpenFile& file, MPI_Offset* offset) {
  ShadowFile& shadow = *file.shadow;
  const std::lock_guard lock(shadow.position_mutex);
  *offset = shadow.view.offset_of(shadow.position);
  return MPI_SUCCESS;
}

int get_byte_offset(OpenFile& file, MPI_Offset offset, MPI_Offset* disp) {
  const FileView& view = file.shadow->view;
  const auto position = view.position_of(offset);
  if (offset < 0 || !position || !view.reaches(*position, 1)) return file.raise(MPI_ERR_ARG);
  *disp = view.byte_offset(*position);
  return MPI_SUCCESS;
}

int seek_shared(OpenFile& file, MPI_Offset offset, int whence) {
  // Rank 0 moves the pointer when every rank has come, and none leaves before it is moved.
  Exchange& exchange = *file.exchange;
  SharedPointer& pointer = file.shadow->shared_pointer;
  exchange.barrier();
  std::int64_t code = MPI_SUCCESS;
  if (exchange.rank() == 0) {
    const Result<Bytes> current = whence == MPI_SEEK_CUR ? pointer.get() : Bytes{0};
    if (!current) {
      code = file.code_of(current.error());
    } else if (const auto target = seek_target(file, offset, whence, *current); !target) {
      code = target.error();
    } else if (const Status moved = pointer.set(*target); !moved) {
      code = file.code_of(moved.error());
    }
  }
  exchange.all_reduce({&code, 1}, Reduce::max);
  return file.raise(static_cast<int>(code));
}

int get_position_shared(OpenFile& file, MPI_Offset* offset) {
  const Result<Bytes> position = file.shadow->shared_pointer.get();
  if (!position) return file.raise(file.code_of(position.error()));
  *offset = file.shadow->view.offset_of(*position);
  return MPI_SUCCESS;
}

int set_atomicity(OpenFile& file, int flag) {
  // An MPI may tell only the rank that differs, which would then not join the others here.
  std::array<std::int64_t, 2> wanted{flag != 0, flag == 0};
  file.exchange->all_reduce(wanted, Reduce::max);
  if (wanted[0] + wanted[1] != 1) return file.raise(MPI_ERR_ARG);
  const int code = real().set_atomicity(file.handle, flag);
  std::int64_t failed = code != MPI_SUCCESS;
  file.exchange->all_reduce({&failed, 1}, Reduce::max);
  if (failed == 0) file.shadow->engine->set_atomic(flag != 0);
  return code;
}

/// Not the MPI's: where ranks differ, OMPIO 4.1 tells only those that do, and the others wait.
int set_size(OpenFile& file, MPI_Offset size) {
  return change_size(file, size, [&](StorageFile& storage) { return storage.resize(size); });
}

/// Not the MPI's: OMPIO 4.1's ranks look for themselves whether the file is shorter, while the root
/// lengthens it already, and those who find that it is not leave the others waiting. It also moves
/// data through the root's file pointer.
int preallocate(OpenFile& file, MPI_Offset size) {
  return change_size(file, size, [&](StorageFile& storage) { return storage.allocate(size); });
}

int get_size(OpenFile& file, MPI_Offset* size) {
  if (size == nullptr || !file.shadow->engine->holds_back()) {
    return real().get_size(file.handle, size);
  }
  const auto found = size_of(file);
  if (!found) return file.raise(found.error());
  *size = *found;
  return MPI_SUCCESS;
}

int sync(OpenFile& file) {
  // What syncing a file that was opened for reading means is the MPI's to say: some refuse.
  if ((file.record.amode & MPI_MODE_RDONLY) != 0) return real().sync(file.handle);
  const Status synced = file.shadow->engine->sync();
  return synced ? MPI_SUCCESS : file.raise(file.code_of(synced.error()));
}

int set_info(OpenFile& file, MPI_Info info) {
  const int code = adopt_info(file, info);
  return info == MPI_INFO_NULL ? file.raise(MPI_ERR_INFO) : code;
}

int get_info(OpenFile& file, MPI_Info* info_used) {
  const int code = real().get_info(file.handle, info_used);
  if (code != MPI_SUCCESS) return code;
  // The MPI tells of aggregators that it would have used, and may name a striping that it was asked
  // for and could not give.
  remove_key(*info_used, "romio_aggregator_list");
  for (const HintKey& known : known_hints()) remove_key(*info_used, std::string(known.key));
  for (const auto& [key, value] : to_pairs(file.shadow->engine->hints_in_force())) {
    PMPI_Info_set(*info_used, key.c_str(), value.c_str());
  }
  return MPI_SUCCESS;
}

}  // namespace forebay::own
