# Statements that read the one before twice: what is computed in place must not double each time.
{
    echo 'op chain(x: f32[N]) -> (y: f32[])'
    echo '{'
    echo '  t0[i] = x[i] + 1'
    for k in $(seq 28); do echo "  t$k[i] = t$((k - 1))[i] / 2 + t$((k - 1))[i] / 2"; done
    echo "  y[] = sum(i) t28[i]"
    echo '}'
    echo 'goal { verify N = 7 }'
} >chain.kg
for reduce in sum prod; do
    sed -i "s/ [a-z]*(i) t28/ $reduce(i) t28/" chain.kg
    timeout 100 kernelgen verify chain.kg --seed 7 >out 2>&1
    echo "exit $?"
    sed -n 's/: [0-9]* cases.*//; /^verify/p' out
done
kernelgen emit chain.kg --target host | wc -c | awk '{ print $1 < 300000 ? "short" : $1 " bytes" }'
