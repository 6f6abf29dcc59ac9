# Objects of the host, one with GPU code embedded, which is named and not shown.
[ "$(uname -m)" = x86_64 ] || exit 77
printf '.section .nv_fatbin,"a"\n.byte 1\n.text\n.type f,@function\nf: ret\n.size f,.-f\n' |
    cc -x assembler -c -o host.o -
kernelgen asm host.o || exit
kernelgen asm host.o --device h100; echo "exit $?"
ar rc host.a host.o
kernelgen asm host.a; echo "exit $?"
printf '\x7fELF\x01\x01\x01' >short.o
kernelgen asm short.o; echo "exit $?"
