#pragma once

#include <mpi.h>

#include <optional>
#include <string>

#include "core/intercept/mpi/datatype_tree.hpp"
#include "core/model/extent.hpp"
#include "core/model/strided_tree.hpp"

namespace forebay {

/// The program's view of a file (MPI_File_set_view), with datatypes that outlive the program's.
/// Positions in a view are data bytes: visible bytes before the position.
class FileView {
 public:
  /// What every file begins with: all bytes, one by one.
  FileView();
  /// Keeps duplicates of the types. `tiled` is the filetype at the displacement.
  FileView(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
           std::string representation, TiledTree tiled);
  ~FileView();
  FileView(FileView&& other) noexcept;
  FileView& operator=(FileView&& other) noexcept;

  const TiledTree& tiled() const { return tiled_; }
  Bytes etype_size() const { return etype_size_; }

  /// The data position `offset` etypes into the view; none if it does not fit.
  std::optional<Bytes> position_of(MPI_Offset offset) const;
  /// The same the other way round; 0 in a view of empty etypes, which has no other position.
  MPI_Offset offset_of(Bytes position) const;
  /// Whether the `length` data positions from `start` on lie at offsets that a file can have.
  bool reaches(Bytes start, Bytes length) const;
  /// The file offset of a data position that the view reaches.
  Bytes byte_offset(Bytes position) const;
  /// The first whole etype that lies at or beyond `file_size`, as a data position: the end of file.
  Bytes end_position(Bytes file_size) const;

  /// MPI_File_get_view: handles that the program is to free, unless they are predefined.
  void tell(MPI_Offset* displacement, MPI_Datatype* etype, MPI_Datatype* filetype,
            char* representation) const;

 private:
  MPI_Offset displacement_ = 0;
  MPI_Datatype etype_ = MPI_BYTE;
  MPI_Datatype filetype_ = MPI_BYTE;
  std::string representation_ = "native";
  Bytes etype_size_ = 1;
  TiledTree tiled_;
};

}  // namespace forebay
