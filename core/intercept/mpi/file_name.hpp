#pragma once

#include <optional>
#include <string>

#include "core/storage/file.hpp"

namespace forebay {

/// The path that declarations go by for an MPI file name: from the root, and without the name of a
/// file system before it, as in "lustre:/scratch/a".
std::string declared_path(const std::string& name);

/// The path, from the root, of the file that the MPI has just opened by `name`. None if that cannot
/// be told.
///
/// ROMIO takes what stands before the first colon off, OMPIO takes the name as it stands, and Open
/// MPI has both. A file of the wrong name must not be touched, so nothing is guessed: the file is
/// there now, and whichever of the two names is there alone is its name.
std::optional<std::string> opened_path(const std::string& name);

/// What the kernel tells the file apart by that `path` names. None where nothing is there, or where
/// it cannot be told. Allocates nothing.
std::optional<FileId> id_at(const char* path);

/// `path` with a sign in place of each number in the file's name: the same for all files of a
/// series.
std::string family_of(const std::string& path);

}  // namespace forebay
