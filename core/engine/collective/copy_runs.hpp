#pragma once
#include "core/model/strided_tree.hpp"
namespace forebay { enum class Direction{gather,scatter}; void copy_contiguous(TreeCursor&,std::byte*,Bytes,Direction); void copy_run(TreeCursor&,const Run&,std::byte*,Bytes,Direction);}
