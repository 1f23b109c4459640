// The aarch64 twin of trampolines_x86_64.S; see there for what it does.
//
// AAPCS64: arguments in x0-x7, v0-v7 and the stack, x8 = address of a returned structure; x16 and x17
// are free between functions.

.macro save_arguments
    stp x29, x30, [sp, #-224]!
    .cfi_adjust_cfa_offset 224
    .cfi_rel_offset x29, 0
    .cfi_rel_offset x30, 8
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
.endm

.macro restore_arguments
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x29, x30, [sp], #224
    .cfi_adjust_cfa_offset -224
    .cfi_restore x29
    .cfi_restore x30
.endm

    .text
    .p2align 4
resolve_and_jump: /* w16 = index of the name */
    .cfi_startproc
    hint #34 /* bti c */
    save_arguments
    mov w0, w16
    bl forebay_resolve
    mov x16, x0
    restore_arguments
    br x16
    .cfi_endproc

    .p2align 4
ask_and_jump: /* w16 = index of the call */
    .cfi_startproc
    hint #34 /* bti c */
    save_arguments
    mov w0, w16
    add x1, sp, #16
    ldr x2, [sp, #8]
    bl forebay_before_path
    mov x16, x0
    restore_arguments
    br x16
    .cfi_endproc

    .set index, 0
.macro trampoline name
    .text
    .globl MPI_File_\name
    .globl PMPI_File_\name
    .type MPI_File_\name, %function
    .type PMPI_File_\name, %function
    .p2align 4
MPI_File_\name:
PMPI_File_\name:
    .cfi_startproc
    hint #34 /* bti c */
    adrp x16, slot_\name
    ldr x16, [x16, #:lo12:slot_\name]
    br x16
first_\name:
    hint #34 /* bti c */
    mov w16, #index
    b resolve_and_jump
    .cfi_endproc
    .size MPI_File_\name, . - MPI_File_\name
    .size PMPI_File_\name, . - PMPI_File_\name
    .section .data.rel.local, "aw", %progbits
    .p2align 3
slot_\name:
    .xword first_\name
    .set index, index + 1
.endm

    .section .data.rel.local, "aw", %progbits
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
    .type \name, %function
    .p2align 4
\name:
    .cfi_startproc
    hint #34 /* bti c */
    adrp x16, path_slot_\name
    ldr x16, [x16, #:lo12:path_slot_\name]
    br x16
ask_\name:
    hint #34 /* bti c */
    mov w16, #index
    b ask_and_jump
    .cfi_endproc
    .size \name, . - \name
    .section .data.rel.local, "aw", %progbits
    .p2align 3
path_slot_\name:
    .xword ask_\name
    .section .data.rel.ro.local, "aw", %progbits
    .p2align 3
    .xword ask_\name
    .set index, index + 1
.endm

    .section .data.rel.local, "aw", %progbits
    .globl forebay_path_slots
    .hidden forebay_path_slots
    .p2align 3
forebay_path_slots:
    .section .data.rel.ro.local, "aw", %progbits
    .globl forebay_path_stubs
    .hidden forebay_path_stubs
    .p2align 3
forebay_path_stubs:
#define FOREBAY_PATH(name, path, directory, path2, directory2, failure) path_trampoline name;
#include "core/intercept/preload/path_names.inc"

    .section .note.GNU-stack, "", %progbits
