# The two example programs do what their comments say.
examples=$(dirname "$(readlink "$(command -v kernelgen)")")/examples
"$examples/run_op" | sed -e 's/[0-9]* cases, [0-9]* elements/N cases/' -e 's/kernel: .*/kernel: K/' \
    -e 's/: [0-9.e-]*$/: small/'
"$examples/ship_wisdom" use missing.jsonl; echo "exit $?"
"$examples/ship_wisdom" tune wisdom.jsonl | cut -d: -f1 | head -n 1
KERNELGEN_HOME=$HOME/elsewhere "$examples/ship_wisdom" use wisdom.jsonl | sed 's/using: .*/using: K/'
