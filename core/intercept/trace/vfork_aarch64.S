// vfork(): as in vfork_x86_64.S. The way back is in a register by itself.
        .text
        .globl  vfork
        .type   vfork, %function
vfork:
        stp     x29, x30, [sp, #-16]!
        bl      forebay_before_vfork
        ldp     x29, x30, [sp], #16
        mov     x0, #0x4111             // CLONE_VM | CLONE_VFORK | SIGCHLD
        mov     x1, #0                  // The same stack.
        mov     x2, #0
        mov     x3, #0
        mov     x4, #0
        mov     x8, #220                // SYS_clone
        svc     #0
        cbnz    x0, 1f
        ret                             // The child.
1:      stp     x0, x30, [sp, #-16]!
        bl      forebay_after_vfork
        ldr     x0, [sp]
        cmn     x0, #4095
        b.cc    2f
        bl      __errno_location
        ldr     x1, [sp]
        neg     w1, w1
        str     w1, [x0]
        mov     x0, #-1
        str     x0, [sp]
2:      ldp     x0, x30, [sp], #16
        ret
        .size   vfork, . - vfork
        .section .note.GNU-stack, "", %progbits
