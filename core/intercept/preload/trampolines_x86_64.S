// Untyped trampolines: MPI_File_X and PMPI_File_X jump through slot X. A slot starts at a stub that
// asks forebay_resolve (resolve.c) for the function, with every register that can carry an argument
// saved around the question, and then jumps there as if the caller had called it directly. Both
// names share a slot, because Open MPI's Fortran bindings call the PMPI_ names.
//
// System V AMD64 ABI: arguments in rdi rsi rdx rcx r8 r9, xmm0-7 and the stack, al = number of vector
// registers of a variadic call, r10 = static chain; r11 is free between functions.

#define FRAME 200 /* 8 integer + 8 vector registers, and 8 bytes that align the stack to 16 */

.macro save_arguments
    sub $FRAME, %rsp
    .cfi_adjust_cfa_offset FRAME
    mov %rdi, 0(%rsp)
    mov %rsi, 8(%rsp)
    mov %rdx, 16(%rsp)
    mov %rcx, 24(%rsp)
    mov %r8, 32(%rsp)
    mov %r9, 40(%rsp)
    mov %rax, 48(%rsp)
    mov %r10, 56(%rsp)
    movups %xmm0, 64(%rsp)
    movups %xmm1, 80(%rsp)
    movups %xmm2, 96(%rsp)
    movups %xmm3, 112(%rsp)
    movups %xmm4, 128(%rsp)
    movups %xmm5, 144(%rsp)
    movups %xmm6, 160(%rsp)
    movups %xmm7, 176(%rsp)
.endm

.macro restore_arguments
    mov 0(%rsp), %rdi
    mov 8(%rsp), %rsi
    mov 16(%rsp), %rdx
    mov 24(%rsp), %rcx
    mov 32(%rsp), %r8
    mov 40(%rsp), %r9
    mov 48(%rsp), %rax
    mov 56(%rsp), %r10
    movups 64(%rsp), %xmm0
    movups 80(%rsp), %xmm1
    movups 96(%rsp), %xmm2
    movups 112(%rsp), %xmm3
    movups 128(%rsp), %xmm4
    movups 144(%rsp), %xmm5
    movups 160(%rsp), %xmm6
    movups 176(%rsp), %xmm7
    add $FRAME, %rsp
    .cfi_adjust_cfa_offset -FRAME
.endm

    .text
    .p2align 4
resolve_and_jump: /* r11 = index of the name */
    .cfi_startproc
    save_arguments
    mov %r11, %rdi
    call forebay_resolve
    mov %rax, %r11
    restore_arguments
    jmp *%r11
    .cfi_endproc

/* The same for calls that reach a file by its name (paths.c): the question is asked at each call as
 * long as the slot leads here, and is told the arguments and who calls. */
    .p2align 4
ask_and_jump: /* r11 = index of the call */
    .cfi_startproc
    save_arguments
    mov %r11, %rdi
    mov %rsp, %rsi
    mov FRAME(%rsp), %rdx
    call forebay_before_path
    mov %rax, %r11
    restore_arguments
    jmp *%r11
    .cfi_endproc

    .set index, 0
.macro trampoline name
    .text
    .globl MPI_File_\name
    .globl PMPI_File_\name
    .type MPI_File_\name, @function
    .type PMPI_File_\name, @function
    .p2align 4
MPI_File_\name:
PMPI_File_\name:
    .cfi_startproc
    endbr64
    jmp *slot_\name(%rip)
first_\name:
    endbr64
    mov $index, %r11d
    jmp resolve_and_jump
    .cfi_endproc
    .size MPI_File_\name, . - MPI_File_\name
    .size PMPI_File_\name, . - PMPI_File_\name
    .section .data.rel.local, "aw", @progbits
    .p2align 3
slot_\name:
    .quad first_\name
    .set index, index + 1
.endm

    .section .data.rel.local, "aw", @progbits
    .globl forebay_slots
    .hidden forebay_slots
    .p2align 3
forebay_slots:
#define FOREBAY_NAME(name) trampoline name;
#include "core/intercept/preload/names.inc"

    .set index, 0
.macro path_trampoline name
    .text
    .globl \name
    .type \name, @function
    .p2align 4
\name:
    .cfi_startproc
    endbr64
    jmp *path_slot_\name(%rip)
ask_\name:
    endbr64
    mov $index, %r11d
    jmp ask_and_jump
    .cfi_endproc
    .size \name, . - \name
    .section .data.rel.local, "aw", @progbits
    .p2align 3
path_slot_\name:
    .quad ask_\name
    .section .data.rel.ro.local, "aw", @progbits
    .p2align 3
    .quad ask_\name
    .set index, index + 1
.endm

    .section .data.rel.local, "aw", @progbits
    .globl forebay_path_slots
    .hidden forebay_path_slots
    .p2align 3
forebay_path_slots:
    .section .data.rel.ro.local, "aw", @progbits
    .globl forebay_path_stubs
    .hidden forebay_path_stubs
    .p2align 3
forebay_path_stubs:
#define FOREBAY_PATH(name, path, directory, path2, directory2, failure) path_trampoline name;
#include "core/intercept/preload/path_names.inc"

    .section .note.GNU-stack, "", @progbits
