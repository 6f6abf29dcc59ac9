# Functions whose instructions are counted by hand in test_object.c.
        .intel_syntax noprefix
        .text

# Four multiply-adds of 256 bits a trip, two loads, one of them folded; no spills.
        .globl  dot
        .type   dot, @function
dot:
        vxorps  ymm0, ymm0, ymm0
        vxorps  ymm1, ymm1, ymm1
        xor     eax, eax
.Ldot:
        vmovups ymm2, [rdi+rax*4]
        vfmadd231ps ymm0, ymm2, [rsi+rax*4]
        vfmadd231ps ymm1, ymm2, ymm2
        vfmadd231ps ymm0, ymm2, ymm2
        vfmadd231ps ymm1, ymm2, ymm2
        add     rax, 8
        cmp     rax, rdx
        jb      .Ldot
        vaddps  ymm0, ymm0, ymm1
        vfmadd231sd xmm0, xmm0, xmm0
        vzeroupper
        ret
        .size   dot, .-dot

# Saves two registers, spills one vector and one integer: two stores before the loop, two loads in
# it (one folded) and one after it. What it reads beyond its frame is an argument, and the array at
# rsp is written by an index.
        .globl  spill
        .type   spill, @function
spill:
        push    rbx
        sub     rsp, 96
        mov     [rsp+88], r12
        mov     r12, rdi
        mov     rbx, [rsp+112]
        vmovaps [rsp+32], ymm1
        mov     [rsp+64], rsi
        mov     dword ptr [rsp+72], 1
.Lspill:
        vaddps  ymm0, ymm0, [rsp+32]
        mov     rcx, [rsp+64]
        mov     [rsp+rcx*8], rbx
        dec     rbx
        jne     .Lspill
        mov     rax, [rsp+64]
        vmovaps [r12], ymm0
        mov     r12, [rsp+88]
        add     rsp, 96
        pop     rbx
        ret
        .size   spill, .-spill

# With a frame pointer; a call; a jump that only the linker knows the end of.
        .globl  framed
        .type   framed, @function
framed:
        push    rbp
        mov     rbp, rsp
        sub     rsp, 16
        mov     [rbp-8], rdi
        call    dot
        mov     rdi, [rbp-8]
        mov     rax, [rbp+16]
        leave
        jmp     elsewhere
        .size   framed, .-framed

# The stack protector's value is kept and compared: no spill. What the register held before it, and
# what it holds after, are spilled.
        .globl  guarded
        .type   guarded, @function
guarded:
        sub     rsp, 40
        mov     [rsp+8], rax
        mov     rax, fs:[0x28]
        mov     [rsp], rcx
        mov     [rsp+24], rax
        xor     eax, eax
        call    dot
        mov     rcx, [rsp]
        mov     rax, [rsp+8]
        mov     [rsp+16], rax
        mov     rdx, [rsp+16]
        mov     rax, [rsp+24]
        sub     rax, fs:[0x28]
        jne     .Lsmashed
        add     rsp, 40
        ret
.Lsmashed:
        call    smashed
        .size   guarded, .-guarded

# rbp is a register like any other: nothing is spilled.
        .globl  plain
        .type   plain, @function
plain:
        mov     [rbp-8], rdi
        mov     rdi, [rbp-8]
        .byte   0x06
        ret
        .size   plain, .-plain

# A loop of instructions younger than some decoders, as bytes because of assemblers that are older:
# tilezero; tileloadd with an index, and with a distance; tdpbf16ps; vdpbf16ps from rip + 16.
        .globl  tiles
        .type   tiles, @function
tiles:
        .byte   0xc4, 0xe2, 0x7b, 0x49, 0xc0
.Ltiles:
        .byte   0xc4, 0xe2, 0x7b, 0x4b, 0x34, 0x3a
        .byte   0xc4, 0xe2, 0x7b, 0x4b, 0x64, 0x3a, 0x40
        .byte   0xc4, 0xe2, 0x4a, 0x5c, 0xc4
        .byte   0x62, 0xf2, 0x76, 0x48, 0x52, 0x05, 0x10, 0x00, 0x00, 0x00
        dec     rcx
        jne     .Ltiles
        ret
        .size   tiles, .-tiles
        .section .note.GNU-stack,"",@progbits
