# What the tool says when it is called wrongly. Exit status 2 each time, and what to do next.
kernelgen; echo "exit $?"
kernelgen biuld; echo "exit $?"
kernelgen build; echo "exit $?"
kernelgen build a.kg b.kg; echo "exit $?"
kernelgen build a.kg --rigr measure; echo "exit $?"
kernelgen build a.kg --rigor; echo "exit $?"
kernelgen build a.kg --size P; echo "exit $?"
kernelgen emit a.kg; echo "exit $?"
kernelgen emit a.kg --target fortran; echo "exit $?"
kernelgen completions csh; echo "exit $?"
kernelgen help biuld; echo "exit $?"
kernelgen help build extra; echo "exit $?"
kernelgen devices --threads 0; echo "exit $?"
kernelgen wisdom sing; echo "exit $?"
kernelgen wisdom forget; echo "exit $?"
kernelgen check missing.kg; echo "exit $?"
mkdir folder.kg
kernelgen check folder.kg; echo "exit $?"
# 'help COMMAND' is the command's help, for each command; neither opens the records.
rm -rf "$KERNELGEN_HOME"
for command in $(kernelgen help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    kernelgen "$command" --help >expected
    kernelgen help "$command" | cmp - expected && echo "$command: $(head -n 1 expected)"
done
kernelgen help | cmp - <(kernelgen --help)
[ ! -e "$KERNELGEN_HOME" ] || echo "records were opened"
