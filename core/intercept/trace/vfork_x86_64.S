// vfork(): the child returns from it first, in the memory and on the stack of its parent, which waits.
// What stands on the stack is overwritten then, hence the way back is kept in a register, which the
// kernel gives back to each of the two as it was.
        .text
        .globl  vfork
        .type   vfork, @function
vfork:
        endbr64
        subq    $8, %rsp                // A call wants the stack aligned to 16 bytes.
        call    forebay_before_vfork
        addq    $8, %rsp
        popq    %rdi
        movl    $58, %eax               // SYS_vfork
        syscall
        testq   %rax, %rax
        jne     1f
        notrack jmp *%rdi               // The child.
1:      pushq   %rdi
        pushq   %rax
        call    forebay_after_vfork
        popq    %rax
        cmpq    $-4095, %rax
        jb      2f
        negl    %eax
        pushq   %rax
        call    __errno_location@PLT
        popq    %rcx
        movl    %ecx, (%rax)
        movl    $-1, %eax
2:      ret
        .size   vfork, . - vfork
        .section .note.GNU-stack, "", @progbits
